#include "regatta/model/collective/candidates.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/internal/choose.h"
#include "regatta/model/cost/collective.h"

namespace regatta::collective {
namespace {

// Beyond this many times the best prediction nothing is tried.
constexpr double kFarBehind = 2.5;
// Shorter messages are hardly striped at all.
constexpr std::size_t kWorthStriping = std::size_t{256} << 10;
// Connections of a pair with a single path: more of them only delay each other.
constexpr int kConnectionsOfOnePath = 2;
// The share of a link's rate without headers of Ethernet, IP and TCP.
constexpr double kPayloadShare = 0.95;

// Bytes that a server sends per second into the network, and what its ranks share it for.
class Model {
 public:
  Model(const TunedCall& call, const GroupTopology& topology)
      : ranks_(topology.ranks),
        bytes_(static_cast<double>(call.bytes)),
        latency_(topology.network.latency.value) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      server_.push_back(topology.sites == nullptr ? rank : topology.sites->server[index]);
      const double known = topology.sites == nullptr ? 0 : topology.sites->rate[index].value;
      rate_[server_.back()] = known > 0 ? known * kPayloadShare : topology.network.rate.value;
    }
  }

  int ranks() const { return ranks_; }
  // ceil(log2 p).
  double levels() const { return std::bit_width(static_cast<unsigned>(ranks_ - 1)); }
  double others() const { return ranks_ - 1; }
  double share() const { return cost::pass_share(ranks_); }

  // Every rank sends so many vectors to ranks all over the group.
  Seconds spread(double steps, double vectors) const {
    std::vector<Flow> flows;
    for (int from = 0; from < ranks_; ++from)
      for (int to = 0; to < ranks_; ++to)
        if (to != from) flows.push_back({from, to, vectors / others()});
    return time(steps, flows);
  }
  // Every rank sends so many vectors to the next.
  Seconds round(double steps, double vectors) const {
    std::vector<Flow> flows;
    for (int from = 0; from < ranks_; ++from)
      flows.push_back({from, (from + 1) % ranks_, vectors});
    return time(steps, flows);
  }
  // Chunks of the best length go through `depth` hops while every rank sends so many vectors.
  Seconds pipelined(double depth, double vectors) const {
    const double move = round(0, vectors).value;
    return {depth * latency_ + move + 2 * std::sqrt(std::max(0.0, depth - 1) * latency_ * move)};
  }

  using Flow = cost::HierarchicalFlow;
  // The latencies, and the link that is busy longest, out or in.
  Seconds time(double steps, const std::vector<Flow>& flows) const {
    std::map<int, double> out;
    std::map<int, double> in;
    for (const Flow& flow : flows) {
      const int from = at(server_, flow.from);
      const int to = at(server_, flow.to);
      if (from == to) continue;
      out[from] += flow.bytes;
      in[to] += flow.bytes;
    }
    double longest = 0;
    for (const auto& [server, rate] : rate_)
      longest = std::max({longest, out[server] / rate, in[server] / rate});
    // Inside one server, at the rate that was measured between two of its ranks.
    if (out.empty() && !flows.empty()) longest = flows.front().bytes / rate_.begin()->second;
    return {steps * latency_ + longest * bytes_};
  }

 private:
  int ranks_;
  double bytes_;
  double latency_;
  std::vector<int> server_;     // by rank
  std::map<int, double> rate_;  // by server
};

Seconds all_reduce_time(Algorithm algorithm, const Model& model,
                        const cost::HierarchicalLayout* grid) {
  switch (algorithm) {
    case Algorithm::kExchange:
      return model.spread(1, model.others());
    case Algorithm::kDoubling:
      return model.spread(model.levels(), model.levels());
    case Algorithm::kHalving:
      return model.spread(2 * model.levels(), 2 * model.share());
    case Algorithm::kDoubleTree:
      return model.pipelined(2 * model.levels(), 2);
    case Algorithm::kHierarchical:
      return model.time(hierarchical_steps(*grid), hierarchical_flows(*grid));
    default:
      return model.round(2 * model.others(), 2 * model.share());
  }
}

Seconds parts_time(Algorithm algorithm, const Model& model) {
  switch (algorithm) {
    case Algorithm::kDirect:
      return model.spread(1, model.share());
    case Algorithm::kDoubling:
    case Algorithm::kHalving:
      return model.spread(model.levels(), model.share());
    case Algorithm::kBruck:
      return model.spread(model.levels(), model.levels() / 2);
    case Algorithm::kRailLocal:
      return model.spread(2, model.share());
    case Algorithm::kPairwise:
      return model.spread(model.others(), model.share());
    default:
      return model.round(model.others(), model.share());
  }
}

Seconds rooted_time(Algorithm algorithm, const Model& model) {
  switch (algorithm) {
    case Algorithm::kDirect:
      return model.spread(1, model.others());
    case Algorithm::kTree:
      return model.spread(model.levels(), model.levels());
    case Algorithm::kDoubleTree:
      return model.pipelined(model.levels() + 1, 1);
    default:
      return model.pipelined(model.others(), 1);
  }
}

Seconds predict(Algorithm algorithm, const TunedCall& call, const GroupTopology& topology) {
  const Model model(call, topology);
  switch (call.kind) {
    case CallKind::kAllReduce:
      return all_reduce_time(algorithm, model, topology.grid);
    case CallKind::kBroadcast:
    case CallKind::kReduce:
      return rooted_time(algorithm, model);
    default:
      return parts_time(algorithm, model);
  }
}

CallShape shape_on(const GroupTopology& topology, const TunedCall& call) {
  return call_shape_of(call.kind, call.bytes, topology.ranks,
                       {.self = {}, .grid = topology.grid, .sites = topology.sites, .setting = {}});
}

}  // namespace

std::vector<SettingCandidate> rank_algorithms(const TunedCall& call, const GroupTopology& topology,
                                              Algorithm wanted) {
  std::vector<SettingCandidate> ranked;
  for (const Algorithm algorithm : algorithms_for(shape_on(topology, call)))
    ranked.push_back({{.algorithm = algorithm}, predict(algorithm, call, topology)});
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const SettingCandidate& a, const SettingCandidate& b) {
                     return a.predicted < b.predicted;
                   });
  if (ranked.empty()) return ranked;
  const Seconds limit = ranked.front().predicted * kFarBehind;
  std::erase_if(ranked, [&](const SettingCandidate& one) {
    return one.predicted > limit && one.setting.algorithm != wanted;
  });
  return ranked;
}

std::vector<Setting> vary_connections(const Setting& setting, const TunedCall& call,
                                      const GroupTopology& topology) {
  std::vector<Setting> settings;
  const std::size_t message = call.bytes / static_cast<std::size_t>(topology.ranks);
  if (message < kWorthStriping) return settings;
  const int all = topology.network.connections;
  const int used = setting.connections == 0 ? all : std::min(setting.connections, all);
  for (int count = 1; count <= all; count *= 2) {
    if (count == used) continue;
    settings.push_back(setting);
    settings.back().connections = count;
  }
  return settings;
}

std::vector<Setting> vary_chunks(const Setting& setting, const TunedCall& call,
                                 const GroupTopology& topology) {
  std::vector<Setting> settings;
  const std::size_t usual = chunk_bytes_of(setting.algorithm, shape_on(topology, call));
  if (usual == 0) return settings;
  for (const std::size_t chunk : {usual / 4, usual * 4}) {
    if (chunk < kWorthStriping / 8 || chunk > call.bytes) continue;
    settings.push_back(setting);
    settings.back().chunk_bytes = chunk;
  }
  return settings;
}

TuningSpace network_tuning_space(const GroupTopology& topology, const Setting& forced) {
  TuningSpace paths;
  paths.algorithms = [topology, forced](const TunedCall& call) {
    std::vector<SettingCandidate> candidates = rank_algorithms(call, topology, forced.algorithm);
    const auto is_forced = [&](const SettingCandidate& one) {
      return one.setting.algorithm == forced.algorithm;
    };
    if (std::any_of(candidates.begin(), candidates.end(), is_forced))
      std::erase_if(candidates, std::not_fn(is_forced));
    for (SettingCandidate& one : candidates) {
      one.setting.chunk_bytes = forced.chunk_bytes;
      one.setting.connections = forced.connections;
      if (forced.connections == 0 && topology.network.paths < 2)
        one.setting.connections = kConnectionsOfOnePath;
    }
    return candidates;
  };
  if (forced.connections == 0)
    paths.connections = [topology](const Setting& setting, const TunedCall& call) {
      return vary_connections(setting, call, topology);
    };
  if (forced.chunk_bytes == 0)
    paths.chunks = [topology](const Setting& setting, const TunedCall& call) {
      return vary_chunks(setting, call, topology);
    };
  return paths;
}

TuningSpace shared_memory_tuning_space(const Setting& forced) {
  TuningSpace paths;
  paths.algorithms = [forced](const TunedCall&) -> std::vector<SettingCandidate> {
    return {{{.algorithm = Algorithm::kStaged, .chunk_bytes = forced.chunk_bytes}, {}}};
  };
  if (forced.chunk_bytes == 0)
    paths.chunks = [](const Setting& setting, const TunedCall& call) {
      std::vector<Setting> settings;
      for (const std::size_t chunk : {kStageBytes / 2, kStageBytes / 4}) {
        if (chunk >= call.bytes) continue;
        settings.push_back(setting);
        settings.back().chunk_bytes = chunk;
      }
      return settings;
    };
  return paths;
}

}  // namespace regatta::collective
