// link_rates/test_rates.h: fabrics whose links are slow, and the trains that they would show.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "regatta/network/link_rates/rate_plan.h"
#include "regatta/network/link_rates/rate_verdict.h"
#include "regatta/network/probe/test_clusters.h"

namespace regatta::link_rates {

using probe::Fabric;
using probe::Shape;

inline std::uint32_t link_called(const topo::Graph& graph, const std::string& cable,
                                 const std::string& from) {
  for (std::uint32_t link = 0; link < 2 * graph.links.size(); ++link)
    if (graph.links[link / 2].name == cable &&
        graph.nodes[fabric::tail_of(graph, link).index()].name == from)
      return link;
  REGATTA_CHECK(false);
}

// True rates by directed link, where they differ from the described ones.
using SlowRates = std::map<std::uint32_t, BytesPerSecond>;

inline BytesPerSecond true_rate(const topo::Graph& graph, const TrainPath& path,
                                const SlowRates& slow) {
  BytesPerSecond rate = described_rate(graph, path);
  for (const std::uint32_t link : path.loaded_links())
    if (const auto found = slow.find(link); found != slow.end())
      rate = std::min(rate, found->second);
  return rate;
}

// The measurements of all paths: each is off by up to `noise` of its rate, in turn.
inline std::vector<PathMeasurement> measure(const topo::Graph& graph,
                                            const std::vector<TrainPath>& paths,
                                            const SlowRates& slow, double noise = 0.05) {
  std::vector<PathMeasurement> all;
  for (const TrainPath& path : paths) {
    const double part = static_cast<double>(all.size() * 7 % 11) / 5 - 1;  // -1 to 1
    all.push_back({.path = path,
                   .rate = (1 + noise * part) * true_rate(graph, path, slow),
                   .offered = {1e12},
                   .trains = 3});
  }
  return all;
}

}  // namespace regatta::link_rates
