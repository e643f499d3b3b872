#include "regatta/network/diag/internal/loss_suspicions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::diag {
namespace {

// The most segments that a connection counts for: its losses are not independent.
constexpr double kSegmentsMost = 20;
constexpr double kHitShare = 0.05;    // of retransmits of a connection that suffers
constexpr double kCleanShare = 0.02;  // the most of connections that do not, together
constexpr std::uint32_t kHitLeast = 3;
constexpr double kHitMost = 0.5;  // of all connections: more are no single link's
constexpr std::uint32_t kOthersLeast = 3;
constexpr double kTogether = 0.8;    // of the connections of these ports over the culprit suffer
constexpr double kExplained = 0.8;   // of all that suffer cross it
constexpr double kStuckShare = 0.3;  // of retransmits, where all connections of a link suffer
constexpr double kBusyShare = 0.5;   // of a link's rate
constexpr double kSegmentBytes = 1500;
constexpr double kGainLeast = 12;    // of log-likelihood against no suspicion
constexpr double kNearlyAsGood = 2;  // the same, between two culprits
constexpr double kConfidenceMost = 0.95;
constexpr std::size_t kAlternativesMost = 3;

struct LossCounts {
  std::uint32_t connections = 0;
  std::uint32_t hit = 0;
  std::uint64_t segments = 0;
  std::uint64_t again = 0;
  double sent = 0;  // of no connection more than kSegmentsMost
  double lost = 0;

  void add(const ConnectionLoss& one, bool is_hit) {
    const double weight = std::min(1.0, kSegmentsMost / one.segments);
    ++connections;
    hit += is_hit ? 1 : 0;
    segments += one.segments;
    again += one.again;
    sent += weight * one.segments;
    lost += weight * one.again;
  }
  double share() const { return sent > 0 ? lost / sent : 0; }
};

double loss_likelihood(const LossCounts& counts) {
  const double share = std::clamp(counts.share(), 1e-4, 1 - 1e-4);
  return counts.lost * std::log(share) + (counts.sent - counts.lost) * std::log(1 - share);
}

struct PortRange {
  PortSide side = PortSide::kAny;
  std::uint16_t first = 0;
  std::uint16_t last = std::numeric_limits<std::uint16_t>::max();

  bool has(const fabric::FiveTuple& flow) const {
    if (side == PortSide::kAny) return true;
    const std::uint16_t port = side == PortSide::kSource ? flow.from_port : flow.to_port;
    return first <= port && port <= last;
  }
};

class SuspicionSearch {
 public:
  SuspicionSearch(const topo::Graph& graph, std::span<const ConnectionLoss> all, Seconds span)
      : graph_(graph), all_(all), span_(span) {
    for (const ConnectionLoss& one : all)
      is_hit_.push_back(one.again >= kHitShare * static_cast<double>(one.segments) &&
                        (one.again > 1 || (one.again == 1 && one.segments == 1)));
  }

  std::optional<LossSuspicion> best() const {
    if (hits() < kHitLeast ||
        static_cast<double>(hits()) > kHitMost * static_cast<double>(all_.size()))
      return {};
    std::vector<Found> found;
    for (const Culprit& culprit : candidates())
      for (const PortSide side : {PortSide::kDestination, PortSide::kSource, PortSide::kAny})
        if (auto one = test(culprit, side)) {
          found.push_back(std::move(*one));
          break;
        }
    if (found.empty()) return {};
    std::ranges::stable_sort(found, std::ranges::greater(), &Found::gain);
    LossSuspicion suspicion = std::move(found.front().suspicion);
    const double best_gain = found.front().gain;
    // The gains of all others, and of no culprit at all, as odds against these.
    double with = 0;
    double all = std::exp(kGainLeast / 2 - best_gain);
    for (const Found& one : found) {
      const double odds = std::exp(one.gain - best_gain);
      all += odds;
      if (best_gain - one.gain > kNearlyAsGood) continue;
      with += odds;
      const Culprit& other = one.suspicion.culprit;
      // Where both directions explain it alike, it is the cable.
      const bool is_same_cable = other.kind == CulpritKind::kLink &&
                                 suspicion.culprit.kind == CulpritKind::kLink &&
                                 other.link == suspicion.culprit.link;
      const bool is_other_direction = is_same_cable && other.forward != other.backward &&
                                      other.forward == suspicion.culprit.backward;
      if (is_other_direction) suspicion.culprit = both_directions_culprit(other.link);
      if (!is_same_cable) suspicion.alternatives.push_back(other);
    }
    // Too many look the same: the connections do not tell where they lose.
    if (suspicion.alternatives.size() > kAlternativesMost) return {};
    suspicion.confidence = std::min(kConfidenceMost, with / all);
    return suspicion;
  }

 private:
  struct Found {
    LossSuspicion suspicion;
    double gain = 0;
  };

  // Directions of cables, cables and switches that most of the suffering connections cross.
  std::vector<Culprit> candidates() const {
    std::vector<std::uint32_t> direction(2 * graph_.links.size());
    std::vector<std::uint32_t> cable(graph_.links.size());
    std::vector<std::uint32_t> node(graph_.nodes.size());
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!is_hit_[i]) continue;
      std::set<std::size_t> cables;
      std::set<std::size_t> nodes;
      for (const std::uint32_t link : all_[i].links) {
        ++direction[link];
        cables.insert(link / 2);
        nodes.insert(fabric::head_of(graph_, link).index());
      }
      for (const std::size_t one : cables)
        ++cable[one];
      for (const std::size_t one : nodes)
        ++node[one];
    }
    const double least = kExplained * static_cast<double>(hits());
    std::vector<Culprit> candidates;
    for (std::size_t one = 0; one < direction.size(); ++one)
      if (direction[one] >= least)
        candidates.push_back(link_culprit({LinkId{static_cast<int>(one / 2)}, one % 2 == 0}));
    for (std::size_t one = 0; one < cable.size(); ++one)
      if (cable[one] >= least)
        candidates.push_back(both_directions_culprit(LinkId{static_cast<int>(one)}));
    for (std::size_t one = 0; one < node.size(); ++one)
      if (node[one] >= least && graph_.nodes[one].kind != topo::NodeKind::kServer)
        candidates.push_back(switch_culprit(NodeId{static_cast<int>(one)}));
    return candidates;
  }

  std::size_t hits() const { return static_cast<std::size_t>(std::ranges::count(is_hit_, true)); }

  // Ports are those of the packets on the path there; else packets there and answers count alike.
  bool crosses(const ConnectionLoss& one, const Culprit& culprit, PortSide side) const {
    const auto links =
        std::span(one.links).first(side == PortSide::kAny ? one.links.size() : one.there);
    return std::ranges::any_of(links, [&](std::uint32_t link) {
      if (culprit.kind == CulpritKind::kSwitch)
        return fabric::head_of(graph_, link) == culprit.node;
      return LinkId{static_cast<int>(link / 2)} == culprit.link &&
             (link % 2 == 0 ? culprit.forward : culprit.backward);
    });
  }

  // Those of the suffering connections over the culprit; none where clean ones have them, too.
  std::optional<PortRange> ports_of(const Culprit& culprit, PortSide side) const {
    PortRange ports{.side = side, .first = std::numeric_limits<std::uint16_t>::max(), .last = 0};
    if (side == PortSide::kAny) return PortRange{};
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!is_hit_[i] || !crosses(all_[i], culprit, side)) continue;
      const fabric::FiveTuple& flow = all_[i].flow;
      const std::uint16_t port = side == PortSide::kSource ? flow.from_port : flow.to_port;
      ports.first = std::min(ports.first, port);
      ports.last = std::max(ports.last, port);
    }
    return ports.first <= ports.last ? std::optional(ports) : std::nullopt;
  }

  // Whether the counted connections alone fill half of a link of the culprit.
  bool is_busy(const Culprit& culprit) const {
    std::vector<double> bytes(2 * graph_.links.size());
    for (const ConnectionLoss& one : all_)
      for (const std::uint32_t link : one.links)
        bytes[link] += kSegmentBytes * static_cast<double>(one.segments);
    for (std::uint32_t link = 0; link < bytes.size(); ++link) {
      const bool is_its = culprit.kind == CulpritKind::kSwitch
                              ? fabric::head_of(graph_, link) == culprit.node ||
                                    fabric::tail_of(graph_, link) == culprit.node
                              : LinkId{static_cast<int>(link / 2)} == culprit.link;
      if (is_its && bytes[link] > kBusyShare * graph_.links[link / 2].rate.value * span_.value)
        return true;
    }
    return false;
  }

  std::optional<Found> test(const Culprit& culprit, PortSide side) const {
    const auto ports = ports_of(culprit, side);
    if (!ports) return {};
    LossCounts its;     // of these ports over the culprit
    LossCounts beside;  // of other ports over it
    LossCounts others;  // all but `its`
    LossCounts all;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const ConnectionLoss& one = all_[i];
      if (one.segments == 0) continue;
      const bool is_over = crosses(one, culprit, side);
      const bool is_its = is_over && ports->has(one.flow);
      (is_its ? its : others).add(one, is_hit_[i]);
      if (is_over && !is_its) beside.add(one, is_hit_[i]);
      all.add(one, is_hit_[i]);
    }
    const bool hits_together = its.hit >= kHitLeast && its.hit >= kTogether * its.connections &&
                               its.hit >= kExplained * all.hit;
    const bool has_clean_others =
        others.connections >= kOthersLeast && others.share() <= kCleanShare;
    if (!hits_together || !has_clean_others) return {};
    if (side == PortSide::kAny) {
      if (its.share() < kStuckShare || is_busy(culprit)) return {};
    } else if (beside.connections < kOthersLeast || beside.share() > kCleanShare) {
      return {};
    }
    const double gain = loss_likelihood(its) + loss_likelihood(others) - loss_likelihood(all);
    if (gain < kGainLeast) return {};
    const bool has_ports = side != PortSide::kAny;
    return Found{.suspicion = {.culprit = culprit,
                               .alternatives = {},
                               .side = side,
                               .first_port = has_ports ? ports->first : std::uint16_t{0},
                               .last_port = has_ports ? ports->last : std::uint16_t{0},
                               .connections = its.connections,
                               .connections_hit = its.hit,
                               .segments = its.segments,
                               .again = its.again,
                               .other_connections = others.connections,
                               .other_segments = others.segments,
                               .other_again = others.again},
                 .gain = gain};
  }

  const topo::Graph& graph_;
  std::span<const ConnectionLoss> all_;
  Seconds span_;
  std::vector<bool> is_hit_;
};

}  // namespace

std::optional<LossSuspicion> suspect(const topo::Graph& graph,
                                     std::span<const ConnectionLoss> connections, Seconds span) {
  return SuspicionSearch(graph, connections, span).best();
}

std::string to_string(const topo::Graph& graph, const LossSuspicion& suspicion) {
  std::string ports;
  if (suspicion.side != PortSide::kAny)
    ports = fmt::format(" {} port{}", suspicion.side == PortSide::kSource ? "from" : "to",
                        suspicion.first_port == suspicion.last_port
                            ? fmt::format(" {}", suspicion.first_port)
                            : fmt::format("s {} to {}", suspicion.first_port, suspicion.last_port));
  std::vector<std::string> places = {to_string(graph, suspicion.culprit)};
  for (const Culprit& other : suspicion.alternatives)
    places.push_back(to_string(graph, other));
  return fmt::format(
      "TCP connections{} over {}: {} of {} sent {} of {} segments again, {} others {} of {}; "
      "confidence {:.2f}",
      ports, join(places, " or "), suspicion.connections_hit, suspicion.connections,
      suspicion.again, suspicion.segments, suspicion.other_connections, suspicion.other_again,
      suspicion.other_segments, suspicion.confidence);
}

}  // namespace regatta::diag
