// collective/candidates.h: the ways to carry out a call, and what the cost model says of
// each. Over the network, with latency a, bytes per second 1/b, p ranks and S bytes of the whole
// vector, the times are those of the headers of algorithm/ in the alpha-beta model. Sources:
// Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005; Sanders, Speck and Traeff, Parallel Computing
// 35(12), 2009; Bruck et al., IEEE TPDS 8(11), 1997.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/collective/call.h"
#include "regatta/model/collective/setting.h"
#include "regatta/model/cost/grid.h"

namespace regatta::collective {

// What the messages of a group meet.
struct Network {
  Seconds latency{50e-6};    // of one small message, on the way
  BytesPerSecond rate{1e9};  // from one rank to another, one way
  int connections = 1;       // of a pair
  int ways = 1;              // over equal-cost links, that they spread over
};

// What the ranks of a group call; the same on all of them.
struct Case {
  CallKind kind = CallKind::kBarrier;
  std::size_t bytes = 0;  // of the whole vector: whole_bytes()
};

struct Ground {
  int ranks = 1;
  const cost::Grid* grid = nullptr;    // where the ranks lie, if a hierarchical form is worth it
  const cost::Sites* sites = nullptr;  // null: each rank is alone on a server
  Network network;
};

struct Candidate {
  Setting setting;
  Seconds predicted;
};

// The algorithms that can carry out the call, the best prediction first; at least one, but for a
// barrier. Those that the model sees far behind the best are left out, but for `wanted`.
std::vector<Candidate> rank_algorithms(const Case& call, const Ground& ground,
                                       Algorithm wanted = Algorithm::kAutomatic);

// What a tuner can choose among, for each kind of call.
struct Ways {
  std::function<std::vector<Candidate>(const Case&)> algorithms;  // the best prediction first
  // Variations of a setting, tried one kind after the other.
  std::function<std::vector<Setting>(const Setting&, const Case&)> connections;
  std::function<std::vector<Setting>(const Setting&, const Case&)> chunks;
};
// Settings that `forced` gives are kept. `ground` and what it points to outlive the result.
Ways network_ways(const Ground& ground, const Setting& forced);
// Inside a server, for calls that pass through stages (internal/shm/staged.h).
Ways shared_ways(const Setting& forced);

// What else can be tried about a setting: with fewer connections, with other chunks. The model sees
// no difference; measuring does.
std::vector<Setting> vary_connections(const Setting& setting, const Case& call,
                                      const Ground& ground);
std::vector<Setting> vary_chunks(const Setting& setting, const Case& call, const Ground& ground);

}  // namespace regatta::collective
