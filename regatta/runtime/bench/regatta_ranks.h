// bench/regatta_ranks.h: Regatta's side of the benchmark: starts the ranks, on this machine or on
// the servers of a lab.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/lab/lab.h"
#include "regatta/runtime/bench/timing.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::bench {

inline constexpr int kRanksMax = 64;
inline constexpr std::size_t kPortsMax = 8;  // connections of a pair that are planned
inline constexpr std::size_t kSizesMax = 64;
inline constexpr int kBatchesMax = 1000;
// Of the text of a tuning file, its end included.
inline constexpr std::size_t kTuningMax = std::size_t{1} << 20;

// Where a rank runs.
struct RankHost {
  std::string server = "here";  // ranks of one server share memory
  std::string address = "127.0.0.1";
  BytesPerSecond link_rate;  // 0: not known
};

// Source ports for the ranks' connections, once it is known where they listen.
using BenchPortPlanner =
    std::function<Result<fabric::RankPorts>(const std::vector<std::string>& endpoints)>;

// Where all run: without a lab as processes of this machine that share memory.
struct TestEnvironment {
  std::optional<lab::LabInfo> lab;
  std::vector<RankHost> places;  // by rank, in a lab
  BenchPortPlanner plan_ports;   // null: each rank looks by itself where its ports lead
};

struct RegattaRun {
  std::vector<Contender> contenders;
  // Of rank 0, in the end, for private buffers; none where their text has kTuningMax bytes or more.
  std::vector<comm::TuningChoice> choices;
};

// "private" with ordinary memory, and without a lab "shared" with buffers of
// Communicator::allocate(); then the task's compression by its name. Fails with the first error of
// a rank, and with kInvalidInput, before any starts, outside of these: 1 to kRanksMax ranks, each
// with a place in a lab, up to kSizesMax sizes with an element for each rank, 1 to kBatchesMax
// batches, less than kTuningMax bytes of tuning.
Result<RegattaRun> run_regatta_ranks(const BenchTask& task, const TestEnvironment& environment);

}  // namespace regatta::bench
