#include "regatta/network/probe/matrix.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "regatta/model/topo/addresses.h"

namespace regatta::probe {
namespace {

constexpr std::uint32_t kPartnersToTry = 4;
constexpr std::uint32_t kPortsToTry = 4;
constexpr std::uint32_t kTriesPerChoice = 24;  // for a link: times the paths that lead past it
constexpr std::uint32_t kTriesMost = 6000;

// NICs below each node: all that its shortest paths down reach.
std::vector<std::vector<LinkId>> nics_below(const topo::Graph& graph) {
  std::vector<std::vector<LinkId>> below(graph.nodes.size());
  for (std::size_t i = 0; i < graph.links.size(); ++i)
    if (graph.links[i].a_nic >= 0)
      below[graph.links[i].b.index()].push_back(LinkId{static_cast<int>(i)});
  // Links stand tier by tier, from the servers up: what is below a link's lower end is complete.
  for (const topo::Link& link : graph.links) {
    if (link.a_nic >= 0) continue;
    const auto& from = below[link.a.index()];
    below[link.b.index()].insert(below[link.b.index()].end(), from.begin(), from.end());
  }
  for (auto& nics : below) {
    std::ranges::sort(nics);
    nics.erase(std::unique(nics.begin(), nics.end()), nics.end());
  }
  return below;
}

struct Candidate {
  Probe probe;
  std::vector<std::uint32_t> there;
  std::vector<std::uint32_t> back;
};

class Planner {
 public:
  Planner(const topo::Graph& graph, const fabric::Routes& routes,
          std::span<const std::uint32_t> seeds, const MatrixOptions& options)
      : graph_(graph),
        routes_(routes),
        seeds_(seeds),
        options_(options),
        below_(nics_below(graph)),
        covered_(2 * graph.links.size()) {
    for (std::size_t i = 0; i < graph.links.size(); ++i) {
      const topo::Link& link = graph.links[i];
      if (link.a_nic >= 0) nics_of_[link.a_nic].push_back(LinkId{static_cast<int>(i)});
    }
  }

  Matrix run() {
    for (std::uint32_t round = 0; round < options_.probes_per_nic; ++round)
      for (const auto& [nic, links] : nics_of_)
        for (const LinkId from : links)
          add_from(from, links);
    for (std::uint32_t link = 0; link < covered_.size(); ++link)
      complete(link);
    for (std::uint32_t link = 0; link < covered_.size(); ++link)
      distinguish(link);
    return std::move(matrix_);
  }

 private:
  std::uint32_t draw(std::size_t below) { return static_cast<std::uint32_t>(random_() % below); }

  bool is_possible(LinkId from, LinkId to) const {
    const topo::Link& a = graph_.links[from.index()];
    const topo::Link& b = graph_.links[to.index()];
    return a.a != b.a && a.a_nic == b.a_nic;
  }

  std::optional<Candidate> candidate(LinkId from, LinkId to, std::uint32_t port) const {
    const bool is_rdma = options_.transport == Transport::kRdma;
    const std::uint32_t first = is_rdma ? kFirstRdmaSourcePort : kFirstSourcePort;
    Candidate one;
    one.probe = {from,
                 to,
                 {.from = topo::address_of(from),
                  .to = topo::address_of(to),
                  .from_port = static_cast<std::uint16_t>(first + port),
                  .to_port = is_rdma ? kRdmaPort : kProbePort,
                  .protocol = 17}};
    if (taken_.contains(one.probe.flow)) return std::nullopt;
    const fabric::FiveTuple& flow = one.probe.flow;
    auto there = routes_.path(from, to, fabric::EcmpNextHop{flow, seeds_, options_.policy});
    auto back =
        routes_.path(to, from, fabric::EcmpNextHop{answer_to(flow), seeds_, options_.policy});
    if (!there || !back) return std::nullopt;
    one.there = std::move(*there);
    one.back = std::move(*back);
    return one;
  }

  // High for links that few paths cover.
  double worth(const Candidate& one) const {
    double sum = 0;
    for (const auto* path : {&one.there, &one.back})
      for (const std::uint32_t link : *path) {
        const auto paths = static_cast<double>(covered_[link].size());
        sum += 1 / (1 + paths * paths);
      }
    return sum;
  }

  void add(const Candidate& one) {
    taken_.insert(one.probe.flow);
    matrix_.probes.push_back(one.probe);
    for (const auto* path : {&one.there, &one.back}) {
      const std::uint32_t number = matrix_.paths.add(*path);
      for (const std::uint32_t link : *path)
        covered_[link].push_back(number);
    }
  }

  void add_from(LinkId from, const std::vector<LinkId>& partners) {
    std::optional<Candidate> best;
    double best_worth = 0;
    std::size_t partners_tried = 0;
    for (std::uint32_t i = 0; i < 4 * kPartnersToTry && partners_tried < kPartnersToTry; ++i) {
      const LinkId to = partners[draw(partners.size())];
      if (!is_possible(from, to)) continue;
      ++partners_tried;
      const std::uint32_t first = draw(options_.ports);
      for (std::uint32_t k = 0; k < std::min<std::uint32_t>(kPortsToTry, options_.ports); ++k) {
        auto one = candidate(from, to, (first + k) % options_.ports);
        if (!one) continue;
        const double its_worth = worth(*one);
        if (best && its_worth <= best_worth) continue;
        best = std::move(one);
        best_worth = its_worth;
      }
    }
    if (best) add(*best);
  }

  // Where probes over a link start or end: below its lower end, and a NIC that is not.
  std::optional<std::pair<LinkId, LinkId>> ends_over(const topo::Link& link) {
    LinkId inside;
    if (link.a_nic >= 0) {
      inside = nic_link(graph_, ServerId{link.a.value}, link.a_nic);
    } else {
      const auto& below = below_[link.a.index()];
      if (below.empty()) return std::nullopt;
      inside = below[draw(below.size())];
    }
    const auto& partners = nics_of_[graph_.links[inside.index()].a_nic];
    for (int i = 0; i < 8; ++i) {
      const LinkId outside = partners[draw(partners.size())];
      if (!is_possible(inside, outside)) continue;
      if (link.a_nic < 0 && std::ranges::binary_search(below_[link.a.index()], outside)) continue;
      return draw(2) == 0 ? std::pair(inside, outside) : std::pair(outside, inside);
    }
    return std::nullopt;
  }

  // Adds the best of many paths over `link` by `rate`, if above 0.
  template <typename Rate>
  bool add_over(std::uint32_t link, Rate&& rate) {
    const topo::Link& cable = graph_.links[link / 2];
    std::uint32_t choices = 1;
    if (cable.a_nic < 0)
      choices = static_cast<std::uint32_t>(graph_.links_of[cable.a.index()].size() *
                                           graph_.links_of[cable.b.index()].size());
    const std::uint32_t tries = std::min(kTriesMost, kTriesPerChoice * (1 + choices));
    std::optional<Candidate> best;
    double best_rate = 0;
    int found = 0;
    for (std::uint32_t i = 0; i < tries && found < 4; ++i) {
      const auto ends = ends_over(cable);
      if (!ends) continue;
      auto one = candidate(ends->first, ends->second, draw(options_.ports));
      if (!one) continue;
      const bool goes = std::ranges::find(one->there, link) != one->there.end() ||
                        std::ranges::find(one->back, link) != one->back.end();
      if (!goes) continue;
      const double its_rate = rate(*one);
      if (its_rate <= best_rate) continue;
      ++found;
      best_rate = its_rate;
      best = std::move(one);
    }
    if (best) add(*best);
    return best.has_value();
  }

  void complete(std::uint32_t link) {
    while (covered_[link].size() < options_.paths_per_link)
      if (!add_over(link, [this](const Candidate& one) { return worth(one); })) return;
  }

  // How many of the paths over `link` go over each other link.
  std::map<std::uint32_t, std::size_t> companions(std::uint32_t link) const {
    std::map<std::uint32_t, std::size_t> count;
    for (const std::uint32_t path : covered_[link])
      for (const std::uint32_t other : matrix_.paths.links(path))
        if (other != link) ++count[other];
    return count;
  }

  // Adds a path beside any one link that all paths over this one share.
  void distinguish(std::uint32_t link) {
    for (int i = 0; i < 3 && !covered_[link].empty(); ++i) {
      std::set<std::uint32_t> shared;
      for (const auto& [other, count] : companions(link))
        if (count == covered_[link].size()) shared.insert(other);
      if (shared.empty()) return;
      const auto avoids = [&](const Candidate& one) {
        const auto& path =
            std::ranges::find(one.there, link) != one.there.end() ? one.there : one.back;
        double avoided = 0;
        for (const std::uint32_t other : shared)
          avoided += std::ranges::find(path, other) == path.end() ? 1 : 0;
        return avoided;
      };
      if (!add_over(link, avoids)) return;
    }
  }

  const topo::Graph& graph_;
  const fabric::Routes& routes_;
  std::span<const std::uint32_t> seeds_;
  const MatrixOptions& options_;
  std::vector<std::vector<LinkId>> below_;           // per node
  std::map<int, std::vector<LinkId>> nics_of_;       // by number in their server
  std::vector<std::vector<std::uint32_t>> covered_;  // paths, per directed link
  std::set<fabric::FiveTuple> taken_;
  std::mt19937 random_{20261122};
  Matrix matrix_;
};

// Whether two other links are together on all of these paths.
bool are_covered_by_two(const Matrix& matrix, std::uint32_t link,
                        std::span<const std::uint32_t> paths) {
  for (const std::uint32_t first : matrix.paths.links(paths[0])) {
    if (first == link) continue;
    std::vector<std::uint32_t> rest;
    for (const std::uint32_t path : paths)
      if (std::ranges::find(matrix.paths.links(path), first) == matrix.paths.links(path).end())
        rest.push_back(path);
    if (rest.empty()) return true;
    for (const std::uint32_t second : matrix.paths.links(rest[0])) {
      if (second == link) continue;
      if (std::ranges::all_of(rest, [&](std::uint32_t path) {
            return std::ranges::find(matrix.paths.links(path), second) !=
                   matrix.paths.links(path).end();
          }))
        return true;
    }
  }
  return false;
}

}  // namespace

fabric::FiveTuple answer_to(const fabric::FiveTuple& probe) {
  fabric::FiveTuple answer = probe;
  std::swap(answer.from, answer.to);
  return answer;
}

Matrix plan_matrix(const topo::Graph& graph, const fabric::Routes& routes,
                   std::span<const std::uint32_t> seeds, const MatrixOptions& options) {
  return Planner(graph, routes, seeds, options).run();
}

Coverage cover(const topo::Graph& graph, const Matrix& matrix) {
  Coverage coverage;
  const std::size_t links = 2 * graph.links.size();
  coverage.first.assign(links + 1, 0);
  for (std::uint32_t path = 0; path < matrix.paths.size(); ++path)
    for (const std::uint32_t link : matrix.paths.links(path))
      ++coverage.first[std::size_t{link} + 1];
  for (std::size_t link = 0; link < links; ++link)
    coverage.first[link + 1] += coverage.first[link];
  coverage.paths.resize(coverage.first[links]);
  std::vector<std::uint32_t> next(coverage.first.begin(), coverage.first.end() - 1);
  for (std::uint32_t path = 0; path < matrix.paths.size(); ++path)
    for (const std::uint32_t link : matrix.paths.links(path))
      coverage.paths[next[link]++] = path;
  for (std::uint32_t link = 0; link < links; ++link) {
    const auto paths = coverage.paths_of(link);
    if (paths.empty()) coverage.missing.push_back(link);
    if (paths.empty()) continue;
    if (paths.size() < 3) coverage.thin.push_back(link);
    std::vector<std::uint32_t> shared;
    for (const std::uint32_t other : matrix.paths.links(paths[0]))
      if (other != link && std::ranges::all_of(paths, [&](std::uint32_t path) {
            return std::ranges::find(matrix.paths.links(path), other) !=
                   matrix.paths.links(path).end();
          }))
        shared.push_back(other);
    for (const std::uint32_t other : shared)
      coverage.hidden.emplace_back(link, other);
    if (shared.empty() && are_covered_by_two(matrix, link, paths))
      coverage.hidden_by_two.push_back(link);
  }
  return coverage;
}

}  // namespace regatta::probe
