// The worth of the confidence of a suspicion: how often those of drawn connections name the part
// that drops segments, beside congestion and random losses.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/diag/internal/loss_suspicions.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

constexpr Seconds kSpan{6};

// Connections of one draw, and the part that drops segments of some of them, if any.
struct DrawnLosses {
  std::vector<ConnectionLoss> connections;
  std::optional<Culprit> guilty;
};

class LossDraw {
 public:
  LossDraw(const fabric::TestFabric& fabric, std::size_t spines, std::uint64_t seed)
      : fabric_(fabric), spines_(spines), random_(seed) {}

  DrawnLosses run() {
    DrawnLosses drawn;
    const std::size_t count = 20 + below(400);
    const std::size_t services = 1 + below(6);
    for (std::size_t i = 0; i < count; ++i)
      drawn.connections.push_back(
          connection(static_cast<std::uint16_t>(5000 + 100 * below(services))));
    congest(drawn.connections);
    if (below(2) == 0) break_one(drawn);
    return drawn;
  }

 private:
  std::size_t below(std::size_t most) { return random_() % most; }
  double share() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  // Between two servers below different leaves; answers take any spine.
  ConnectionLoss connection(std::uint16_t port) {
    const std::size_t servers = fabric_.nics.size();
    const std::size_t from = below(servers);
    std::size_t to = below(servers);
    while (to / spines_ == from / spines_)
      to = below(servers);
    const auto path = [&](std::size_t a, std::size_t b) {
      const std::size_t spine = below(spines_);
      return *fabric_.routes.path(fabric_.nics[a], fabric_.nics[b],
                                  [&](NodeId, std::size_t) { return spine; });
    };
    ConnectionLoss one;
    one.links = path(from, to);
    one.there = one.links.size();
    std::ranges::copy(path(to, from), std::back_inserter(one.links));
    const auto source = static_cast<std::uint16_t>(32768 + below(28000));
    one.flow = {topo::address_of(fabric_.nics[from]), topo::address_of(fabric_.nics[to]), source,
                port, 6};
    one.segments = static_cast<std::uint32_t>(std::exp(1 + 9 * share()));
    return one;
  }

  // Some links lose segments of all connections, others a few at random.
  void congest(std::vector<ConnectionLoss>& connections) {
    std::vector<double> lost(2 * fabric_.graph.links.size(), 0.005 * share());
    for (std::size_t i = below(4); i > 0; --i)
      lost[below(lost.size())] = 0.25 * share();
    for (ConnectionLoss& one : connections) {
      double through = 1;
      for (const std::uint32_t link : one.links)
        through *= 1 - lost[link] * share();
      one.again = std::binomial_distribution<std::uint32_t>(one.segments, 1 - through)(random_);
    }
  }

  // A link, one direction of it or a switch drops all or many segments of a service or of all.
  void break_one(DrawnLosses& drawn) {
    const ConnectionLoss& some = drawn.connections[below(drawn.connections.size())];
    const std::uint32_t link = some.links[below(some.there)];
    const std::size_t kind = below(3);
    drawn.guilty =
        kind == 0 ? link_culprit(fabric::directed_link(link))
        : kind == 1
            ? both_directions_culprit(LinkId{static_cast<int>(link / 2)})
            : switch_culprit(fabric::head_of(fabric_.graph, some.links[below(some.there - 1)]));
    const bool is_all_of_tcp = below(3) == 0;
    const double dropped = below(2) == 0 ? 1 : 0.1 + 0.9 * share();
    for (ConnectionLoss& one : drawn.connections) {
      if (!is_all_of_tcp && one.flow.to_port != some.flow.to_port) continue;
      const auto ends = is_all_of_tcp ? std::span<const std::uint32_t>(one.links)
                                      : std::span<const std::uint32_t>(one.links).first(one.there);
      if (!is_met(*drawn.guilty, ends)) continue;
      if (dropped == 1)
        one.segments = one.again = static_cast<std::uint32_t>(2 + below(6));
      else
        one.again = std::max(
            one.again, std::binomial_distribution<std::uint32_t>(one.segments, dropped)(random_));
    }
  }

  bool is_met(const Culprit& guilty, std::span<const std::uint32_t> links) const {
    const std::vector<std::uint32_t> its = links_to_avoid(fabric_.graph, guilty);
    return std::ranges::any_of(
        links, [&](std::uint32_t link) { return std::ranges::find(its, link) != its.end(); });
  }

  const fabric::TestFabric& fabric_;
  std::size_t spines_;
  std::mt19937_64 random_;
};

// A cable counts for either direction of it.
bool names(const LossSuspicion& suspicion, const Culprit& guilty) {
  const auto is_it = [&](const Culprit& one) {
    if (one.kind != guilty.kind) return false;
    return one.kind == CulpritKind::kSwitch ? one.node == guilty.node : one.link == guilty.link;
  };
  return is_it(suspicion.culprit) || std::ranges::any_of(suspicion.alternatives, is_it);
}

TEST(LossSuspicionsOfDrawnConnections, AreAtLeastAsOftenRightAsTheyClaim) {
  const fabric::TestFabric small{8, 2, {1e9}};
  const fabric::TestFabric large{32, 4, {1e9}};
  int suspicions = 0;
  int right = 0;
  int without_fault = 0;
  int suspected_without_fault = 0;
  double claimed = 0;
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    const bool is_large = seed % 2 == 1;
    const auto& fabric = is_large ? large : small;
    const DrawnLosses drawn = LossDraw(fabric, is_large ? 4 : 2, seed).run();
    without_fault += drawn.guilty ? 0 : 1;
    const auto found = suspect(fabric.graph, drawn.connections, kSpan);
    if (!found) continue;
    ++suspicions;
    claimed += found->confidence;
    if (!drawn.guilty) ++suspected_without_fault;
    if (drawn.guilty && names(*found, *drawn.guilty)) ++right;
  }
  RecordProperty("suspicions", suspicions);
  RecordProperty("right", right);
  EXPECT_GT(suspicions, 300) << "else these draws tell little";
  EXPECT_GE(right, claimed);
  EXPECT_LE(suspected_without_fault, without_fault / 200);
}

}  // namespace
}  // namespace regatta::diag
