#include "regatta/coll/tuning/candidates.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "regatta/coll/algorithm/choose.h"
#include "regatta/coll/shm/shelf.h"

namespace regatta::coll {
namespace {

// Beyond this many times the best prediction nothing is tried.
constexpr double kFarBehind = 2.5;
// A message that is no longer is sent as one over one connection.
constexpr std::size_t kWorthStriping = std::size_t{256} << 10;

class Model {
 public:
  Model(const Case& call, const Ground& ground)
      : ranks_(ground.ranks),
        bytes_(static_cast<double>(call.bytes)),
        latency_(ground.network.latency.value),
        rate_(ground.network.rate.value) {}

  int ranks() const { return ranks_; }
  // ceil(log2 p).
  double levels() const { return std::bit_width(static_cast<unsigned>(ranks_ - 1)); }
  double others() const { return ranks_ - 1; }
  double share() const { return others() / ranks_; }
  // So many latencies, and so many times the vector over the own link.
  Seconds time(double steps, double vectors) const {
    return {steps * latency_ + vectors * bytes_ / rate_};
  }
  // In chunks of the best length: `depth` hops, `vectors` over the link.
  Seconds pipelined(double depth, double vectors) const {
    const double move = vectors * bytes_ / rate_;
    return {depth * latency_ + move + 2 * std::sqrt(std::max(0.0, depth - 1) * latency_ * move)};
  }

 private:
  int ranks_;
  double bytes_;
  double latency_;
  double rate_;
};

Seconds all_reduce_time(Algorithm algorithm, const Model& model, const cost::Grid* grid) {
  switch (algorithm) {
    case Algorithm::kExchange:
      return model.time(1, model.others());
    case Algorithm::kDoubling:
      return model.time(model.levels(), model.levels());
    case Algorithm::kHalving:
      return model.time(2 * model.levels(), 2 * model.share());
    case Algorithm::kDoubleTree:
      return model.pipelined(2 * model.levels(), 2);
    case Algorithm::kHierarchical: {
      // Between servers each rank sends its slice alone.
      double most = 0;
      std::vector<double> sent(static_cast<std::size_t>(model.ranks()));
      const int locals = grid->ranks_per_server();
      for (const cost::GridFlow& flow : grid_flows(*grid))
        sent[static_cast<std::size_t>(flow.from)] += flow.bytes;
      for (const double bytes : sent)
        most = std::max(most, bytes - 2.0 * (locals - 1) / locals);
      return model.time(grid_steps(*grid), std::max(most, 0.0));
    }
    default:
      return model.time(2 * model.others(), 2 * model.share());
  }
}

Seconds parts_time(Algorithm algorithm, const Model& model) {
  switch (algorithm) {
    case Algorithm::kDirect:
      return model.time(1, model.share());
    case Algorithm::kDoubling:
    case Algorithm::kHalving:
      return model.time(model.levels(), model.share());
    case Algorithm::kBruck:
      return model.time(model.levels(), model.levels() / 2);
    case Algorithm::kRailLocal:
      return model.time(2, model.share());
    default:
      return model.time(model.others(), model.share());
  }
}

Seconds rooted_time(Algorithm algorithm, const Model& model) {
  switch (algorithm) {
    case Algorithm::kDirect:
      return model.time(1, model.others());
    case Algorithm::kTree:
      return model.time(model.levels(), model.levels());
    case Algorithm::kDoubleTree:
      return model.pipelined(model.levels() + 1, 1);
    default:
      return model.pipelined(model.others(), 1);
  }
}

Seconds predict(Algorithm algorithm, const Case& call, const Ground& ground) {
  const Model model(call, ground);
  switch (call.kind) {
    case CallKind::kAllReduce:
      return all_reduce_time(algorithm, model, ground.grid);
    case CallKind::kBroadcast:
    case CallKind::kReduce:
      return rooted_time(algorithm, model);
    default:
      return parts_time(algorithm, model);
  }
}


}  // namespace

std::vector<Candidate> rank_algorithms(const Case& call, const Ground& ground, Algorithm wanted) {
  std::vector<Candidate> ranked;
  for (const Algorithm algorithm : algorithms_for(call.kind, call.bytes, ground.ranks, ground.grid != nullptr))
    ranked.push_back({{.algorithm = algorithm}, predict(algorithm, call, ground)});
  std::stable_sort(ranked.begin(), ranked.end(), [](const Candidate& a, const Candidate& b) {
    return a.predicted < b.predicted;
  });
  if (ranked.empty()) return ranked;
  const Seconds limit = ranked.front().predicted * kFarBehind;
  std::erase_if(ranked, [&](const Candidate& one) {
    return one.predicted > limit && one.setting.algorithm != wanted;
  });
  return ranked;
}

std::vector<Setting> vary_connections(const Setting& setting, const Case& call,
                                      const Ground& ground) {
  std::vector<Setting> settings;
  const std::size_t message = call.bytes / static_cast<std::size_t>(ground.ranks);
  if (message < kWorthStriping) return settings;
  for (int count = 1; count < ground.network.connections; count *= 2) {
    settings.push_back(setting);
    settings.back().connections = count;
  }
  return settings;
}

std::vector<Setting> vary_chunks(const Setting& setting, const Case& call, const Ground& ground) {
  std::vector<Setting> settings;
  const std::size_t usual = chunk_bytes_of(setting.algorithm, call.kind, call.bytes, ground.ranks);
  if (usual == 0) return settings;
  for (const std::size_t chunk : {usual / 4, usual * 4}) {
    if (chunk < kWorthStriping / 8 || chunk > call.bytes) continue;
    settings.push_back(setting);
    settings.back().chunk_bytes = chunk;
  }
  return settings;
}

Ways network_ways(const Ground& ground, const Setting& forced) {
  Ways ways;
  ways.algorithms = [ground, forced](const Case& call) {
    std::vector<Candidate> candidates = rank_algorithms(call, ground, forced.algorithm);
    const auto is_forced = [&](const Candidate& one) {
      return one.setting.algorithm == forced.algorithm;
    };
    if (std::any_of(candidates.begin(), candidates.end(), is_forced))
      std::erase_if(candidates, std::not_fn(is_forced));
    for (Candidate& one : candidates) {
      one.setting.chunk_bytes = forced.chunk_bytes;
      one.setting.connections = forced.connections;
    }
    return candidates;
  };
  if (forced.connections == 0)
    ways.connections = [ground](const Setting& setting, const Case& call) {
      return vary_connections(setting, call, ground);
    };
  if (forced.chunk_bytes == 0)
    ways.chunks = [ground](const Setting& setting, const Case& call) {
      return vary_chunks(setting, call, ground);
    };
  return ways;
}

Ways shared_ways(const Setting& forced) {
  Ways ways;
  ways.algorithms = [forced](const Case&) -> std::vector<Candidate> {
    return {{{.algorithm = Algorithm::kStaged, .chunk_bytes = forced.chunk_bytes}, {}}};
  };
  if (forced.chunk_bytes == 0)
    ways.chunks = [](const Setting& setting, const Case& call) {
      std::vector<Setting> settings;
      for (const std::size_t chunk : {kStageBytes / 2, kStageBytes / 4}) {
        if (chunk >= call.bytes) continue;
        settings.push_back(setting);
        settings.back().chunk_bytes = chunk;
      }
      return settings;
    };
  return ways;
}

}  // namespace regatta::coll
