#include "regatta/network/fabric/port_plan.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "regatta/base/core/result.h"

namespace regatta::fabric {
namespace {

// One of a connection's paths between switches, and the ports that lead it there.
struct CandidatePath {
  std::vector<std::uint32_t> links;
  std::vector<std::uint16_t> ports;
};

class Planner {
 public:
  Planner(const Routes& routes, std::span<const std::uint32_t> seeds,
          std::span<const PlannedConnection> connections, const PortPlanOptions& options)
      : routes_(routes),
        seeds_(seeds),
        connections_(connections),
        options_(options),
        random_(options.seed) {
    REGATTA_CHECK(options.range.first <= options.range.last);
    std::map<std::tuple<FiveTuple, LinkId, LinkId>, std::size_t> known;
    for (std::size_t i = 0; i < connections.size(); ++i) {
      const PlannedConnection& one = connections[i];
      FiveTuple flow = one.flow;
      flow.from_port = 0;
      const auto [first, is_new] = known.try_emplace({flow, one.from, one.to}, i);
      paths_.push_back(is_new ? paths_of(one) : std::vector<CandidatePath>(paths_[first->second]));
      alike_.push_back(first->second);
      if (is_new) used_[i].assign(paths_[i].size(), 0);
    }
    chosen_.assign(connections.size(), 0);
  }

  PortPlan plan() {
    std::map<std::uint32_t, std::map<std::uint32_t, std::vector<std::size_t>>> turns;  // by set
    for (std::size_t i = 0; i < connections_.size(); ++i)
      turns[connections_[i].set][connections_[i].turn].push_back(i);
    make_room();
    PortPlan plan{.flows = std::vector<std::uint32_t>(load_.size())};
    for (const auto& [set, of_set] : turns) {
      std::ranges::fill(load_, 0);
      for (const auto& [turn, connections] : of_set)
        lead(connections);
      for (std::size_t link = 0; link < load_.size(); ++link)
        plan.flows[link] += load_[link];
      plan.most_of_set.resize(set + 1);
      plan.most_of_set[set] = *std::ranges::max_element(load_);
      plan.most = std::max(plan.most, plan.most_of_set[set]);
    }
    finish(plan);
    return plan;
  }

 private:
  // Ports are tried until no new path has come up for as long as it took to find all so far, twice.
  std::vector<CandidatePath> paths_of(const PlannedConnection& one) const {
    std::map<std::vector<std::uint32_t>, std::size_t> known;
    std::vector<CandidatePath> paths;
    FiveTuple flow = one.flow;
    std::uint32_t last_new = 0;
    const std::uint32_t ports = options_.range.last - options_.range.first + 1U;
    for (std::uint32_t i = 0;
         i < ports && i <= 3 * last_new + 64 && paths.size() < options_.most_paths; ++i) {
      flow.from_port = static_cast<std::uint16_t>(options_.range.first + i);
      auto path = routes_.path(one.from, one.to, EcmpNextHop{flow, seeds_, options_.policy});
      if (!path || path->size() <= 2) return paths;
      const std::vector<std::uint32_t> between(path->begin() + 1, path->end() - 1);
      const auto [at, is_new] = known.try_emplace(between, paths.size());
      if (is_new) {
        paths.push_back({between, {}});
        last_new = i;
      }
      paths[at->second].ports.push_back(flow.from_port);
    }
    return paths;
  }

  void put(std::size_t connection, int more) {
    if (paths_[connection].empty()) return;
    used_[alike_[connection]][chosen_[connection]] += static_cast<std::uint32_t>(more);
    for (const std::uint32_t link : paths_[connection][chosen_[connection]].links) {
      load_[link] += static_cast<std::uint32_t>(more);
      if (more > 0)
        on_[link].insert(connection);
      else
        on_[link].erase(connection);
    }
  }

  // The cost that a path adds to the sum of squared loads, so that the fullest links count most.
  std::uint64_t cost(const CandidatePath& path) const {
    std::uint64_t sum = 0;
    for (const std::uint32_t link : path.links)
      sum += 2ULL * load_[link] + 1;
    return sum;
  }

  // The cheapest path other than `but`; of such the one that fewest from there to there take, then
  // by chance.
  std::size_t cheapest(std::size_t connection, std::size_t but) {
    std::size_t best = but;
    std::pair least{~0ULL, ~0U};
    std::uint32_t equals = 0;
    const std::vector<std::uint32_t>& used = used_[alike_[connection]];
    for (std::size_t path = 0; path < paths_[connection].size(); ++path) {
      if (path == but) continue;
      const std::pair here{static_cast<unsigned long long>(cost(paths_[connection][path])),
                           used[path]};
      if (here < least) equals = 0;
      if (here > least || random_() % ++equals != 0) continue;
      least = here;
      best = path;
    }
    return best;
  }

  void make_room() {
    std::uint32_t links = 0;
    for (const auto& paths : paths_)
      for (const CandidatePath& path : paths)
        for (const std::uint32_t link : path.links)
          links = std::max(links, link + 1);
    load_.assign(std::max(links, 1U), 0);
    on_.resize(load_.size());
  }

  // Connections of earlier turns keep their paths.
  void lead(const std::vector<std::size_t>& connections) {
    for (auto& on : on_)
      on.clear();
    const std::uint32_t least = least_possible(connections);
    for (const std::size_t i : connections) {
      chosen_[i] = cheapest(i, kNone);
      put(i, 1);
    }
    for (std::uint32_t step = 0; step < options_.most_steps; ++step) {
      const std::uint32_t most = *std::ranges::max_element(load_);
      if (most <= least) break;
      if (!lead_another_path(most)) break;
    }
  }

  // No plan has fewer on its fullest link: connections share the links by which they leave their
  // first switch, and those by which they come to their last one, with what is there already.
  std::uint32_t least_possible(const std::vector<std::size_t>& connections) const {
    struct Shared {
      std::set<std::uint32_t> links;
      std::uint32_t connections = 0;
    };
    std::map<std::uint32_t, Shared> leave;  // by the first of the links
    std::map<std::uint32_t, Shared> come;
    for (const std::size_t i : connections) {
      const std::vector<CandidatePath>& paths = paths_[i];
      if (paths.empty()) continue;
      std::set<std::uint32_t> first;
      std::set<std::uint32_t> last;
      for (const CandidatePath& path : paths) {
        first.insert(path.links.front());
        last.insert(path.links.back());
      }
      for (const auto& [shared, links] : {std::pair{&leave, &first}, {&come, &last}}) {
        Shared& one = (*shared)[*links->begin()];
        one.links.insert(links->begin(), links->end());
        ++one.connections;
      }
    }
    std::uint32_t least = *std::ranges::max_element(load_);
    for (const auto* shared : {&leave, &come}) {
      for (const auto& [first, one] : *shared) {
        const auto width = static_cast<std::uint32_t>(one.links.size());
        std::uint32_t all = one.connections;
        for (const std::uint32_t link : one.links)
          all += load_[link];
        least = std::max(least, (all + width - 1) / width);
      }
    }
    return least;
  }

  // Reroutes a connection on a link with load `most`, but not the one that was rerouted last.
  bool lead_another_path(std::uint32_t most) {
    std::vector<std::uint32_t> full;
    for (std::uint32_t link = 0; link < load_.size(); ++link)
      if (load_[link] == most) full.push_back(link);
    const std::uint32_t link = full[random_() % full.size()];
    std::vector<std::size_t> candidates;
    for (const std::size_t connection : on_[link])
      if (connection != led_last_ && paths_[connection].size() > 1)
        candidates.push_back(connection);
    if (candidates.empty()) return false;
    const std::size_t connection = candidates[random_() % candidates.size()];
    put(connection, -1);
    chosen_[connection] = cheapest(connection, chosen_[connection]);
    put(connection, 1);
    led_last_ = connection;
    return true;
  }

  void finish(PortPlan& plan) const {
    plan.most_by_chance = most_by_chance();
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, std::uint16_t>> taken;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      const FiveTuple& flow = connections_[i].flow;
      plan.ports.push_back(options_.range.first);
      if (paths_[i].empty()) continue;
      for (const std::uint16_t port : paths_[i][chosen_[i]].ports) {
        plan.ports.back() = port;
        if (taken.insert({flow.from, flow.to, port, flow.to_port}).second) break;
      }
    }
  }

  std::uint32_t most_by_chance() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> load;  // by set and link
    std::uint32_t most = 0;
    const std::size_t ports = options_.range.last - options_.range.first + 1U;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      FiveTuple flow = connections_[i].flow;
      flow.from_port = static_cast<std::uint16_t>(options_.range.first + i % ports);
      const auto path = routes_.path(connections_[i].from, connections_[i].to,
                                     EcmpNextHop{flow, seeds_, options_.policy});
      for (std::size_t hop = 1; path && hop + 1 < path->size(); ++hop)
        most = std::max(most, ++load[{connections_[i].set, (*path)[hop]}]);
    }
    return most;
  }

  static constexpr std::size_t kNone = ~std::size_t{0};

  const Routes& routes_;
  std::span<const std::uint32_t> seeds_;
  std::span<const PlannedConnection> connections_;
  const PortPlanOptions& options_;
  std::mt19937_64 random_;
  std::vector<std::vector<CandidatePath>> paths_;  // per connection; empty: none, or below one leaf
  std::vector<std::size_t> chosen_;                // of these
  std::vector<std::size_t> alike_;  // per connection: the first one from there to there
  std::map<std::size_t, std::vector<std::uint32_t>> used_;  // by it: connections on each path
  std::vector<std::uint32_t> load_;        // per directed link, of the set that is led
  std::vector<std::set<std::size_t>> on_;  // connections of the turn that is led, per directed link
  std::size_t led_last_ = kNone;
};

}  // namespace

PortPlan plan_ports(const Routes& routes, std::span<const std::uint32_t> seeds,
                    std::span<const PlannedConnection> connections,
                    const PortPlanOptions& options) {
  return Planner(routes, seeds, connections, options).plan();
}

}  // namespace regatta::fabric
