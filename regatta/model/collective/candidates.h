// collective/candidates.h: the settings that can carry out a call, and their times in the cost
// model. Over the network, with latency a, bytes per second 1/b, p ranks and S bytes of the whole
// vector, the times are those of the headers of internal/ in the alpha-beta model. Sources:
// Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005; Sanders, Speck and Traeff, Parallel Computing
// 35(12), 2009; Bruck et al., IEEE TPDS 8(11), 1997.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/collective/call.h"
#include "regatta/model/collective/setting.h"
#include "regatta/model/cost/hierarchical_layout.h"

namespace regatta::collective {

// The network between the ranks of a group.
struct NetworkParameters {
  Seconds latency{50e-6};    // of one small message
  BytesPerSecond rate{1e9};  // from one rank to another, in one direction
  int connections = 1;       // of a pair
  int paths = 1;             // equal-cost paths that the connections spread over
};

// A call of a group; the same on all ranks.
struct TunedCall {
  CallKind kind = CallKind::kBarrier;
  std::size_t bytes = 0;  // of the whole vector: whole_bytes()
};

struct GroupTopology {
  int ranks = 1;
  const cost::HierarchicalLayout* grid =
      nullptr;  // where the ranks lie, if a hierarchical form is worth it
  const cost::RankLocations* sites = nullptr;  // null: each rank is alone on a server
  NetworkParameters network;
};

struct SettingCandidate {
  Setting setting;
  Seconds predicted;
};

// The algorithms that can carry out the call, the best prediction first; at least one, except for a
// barrier. Those that are far slower than the best in the model are left out, except `wanted`.
std::vector<SettingCandidate> rank_algorithms(const TunedCall& call, const GroupTopology& topology,
                                              Algorithm wanted = Algorithm::kAutomatic);

// The settings that a tuner can choose from, for each kind of call.
struct TuningSpace {
  std::function<std::vector<SettingCandidate>(const TunedCall&)>
      algorithms;  // the best prediction first
  // Variations of a setting, tried one kind after the other.
  std::function<std::vector<Setting>(const Setting&, const TunedCall&)> connections;
  std::function<std::vector<Setting>(const Setting&, const TunedCall&)> chunks;
};
// Settings in `forced` are kept. `topology` and what it points to outlive the result.
TuningSpace network_tuning_space(const GroupTopology& topology, const Setting& forced);
// Inside a server, for calls that pass through stages (internal/shm/staged.h).
TuningSpace shared_memory_tuning_space(const Setting& forced);

// Variants of a setting that can be tried: fewer connections, other chunks. The model sees no
// difference between them; measurements do.
std::vector<Setting> vary_connections(const Setting& setting, const TunedCall& call,
                                      const GroupTopology& topology);
std::vector<Setting> vary_chunks(const Setting& setting, const TunedCall& call,
                                 const GroupTopology& topology);

}  // namespace regatta::collective
