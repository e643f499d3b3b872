// link_rates/rate_plan.h: the packet trains that measure the rate of every link in each direction.
// Pure and deterministic.
//
// A train is a burst of packets of one flow. Those that carry the load have a time to live that
// ends at one router of the path, so that only the links up to there are loaded; a few small ones
// in between go on to the receiver, which measures how far the load pulled them apart. So each link
// can be the last one that is loaded, and no narrower link behind it hides its rate.
// Source: Harfoush, Bestavros, Byers, "Measuring bottleneck bandwidth of targeted path segments",
// INFOCOM 2003; Dovrolis, Ramanathan, Moore, "Packet-dispersion techniques and a
// capacity-estimation methodology", ToN 12(6), 2004.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::link_rates {

// Beside those of the probes (probe/matrix.h), below the ephemeral ports of a kernel.
inline constexpr std::uint16_t kTrainPort = 27950;             // where trains arrive
inline constexpr std::uint16_t kFirstTrainSourcePort = 27951;  // the first of the source ports

// The path of a train, and how much of it is loaded.
struct TrainPath {
  LinkId from;  // of the NICs
  LinkId to;
  fabric::FiveTuple flow;
  std::vector<std::uint32_t> links;  // directed, from NIC to NIC
  std::size_t loaded = 0;            // the first so many carry the load; all: nothing ends early

  std::span<const std::uint32_t> loaded_links() const { return std::span(links).first(loaded); }
  // The time to live of the packets that carry the load; none: the whole path is loaded.
  std::optional<int> time_to_live() const {
    if (loaded == links.size()) return std::nullopt;
    return static_cast<int>(loaded);
  }
  bool operator==(const TrainPath&) const = default;
};

// The described rate of the narrowest loaded link: what a train over the path should measure.
BytesPerSecond described_rate(const topo::Graph& graph, const TrainPath& path);

struct RatePlanOptions {
  std::size_t paths_per_link = 3;  // that load it last
  std::uint16_t ports = 32;        // source ports from the first one on
  fabric::HashPolicy policy = fabric::HashPolicy::kFields;
};

struct RatePlan {
  std::vector<TrainPath> paths;
  std::vector<std::uint32_t> missing;  // directed links that no path loads last
};

// For each directed link some paths that load it last, with nothing narrower before it where there
// is such a path, from servers as different as possible. `seeds` by NodeId, of the switches'
// hashes. Cost: at most 400 paths for each NIC, in large fabrics 24.
RatePlan plan_rates(const topo::Graph& graph, const fabric::Routes& routes,
                    std::span<const std::uint32_t> seeds, const RatePlanOptions& options = {});

// The same from paths that are known in another way (port_discovery.h).
RatePlan plan_rates(const topo::Graph& graph, std::span<const TrainPath> known,
                    const RatePlanOptions& options = {});

// The flows among which the plan chooses, without their links: each NIC to some near and some far
// ones of its rail, by each source port; all of one port before the next port. At most 400,000, by
// fewer ports, and at least two ports.
std::vector<TrainPath> candidate_flows(const topo::Graph& graph, const RatePlanOptions& options);

}  // namespace regatta::link_rates
