// bench/regatta_ranks.h: runs Regatta's ranks of the benchmark, on this machine or on the servers
// of a lab.
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
// Bytes of the text of a tuning file with its zero byte.
inline constexpr std::size_t kTuningMax = std::size_t{1} << 20;

// The location of a rank.
struct RankHost {
  std::string server = "here";  // ranks of one server share memory
  std::string address = "127.0.0.1";
  BytesPerSecond link_rate;  // 0: unknown
};

// Source ports for the ranks' connections, given where they listen.
using BenchPortPlanner =
    std::function<Result<fabric::RankPorts>(const std::vector<std::string>& endpoints)>;

// The locations of all ranks: without a lab they are processes of this machine that share memory.
struct TestEnvironment {
  std::optional<lab::LabInfo> lab;
  std::vector<RankHost> places;  // by rank, in a lab
  BenchPortPlanner plan_ports;   // null: each rank discovers the paths of its ports itself
};

// The lower bound of an all_reduce of each of the task's sizes over the network of a lab; empty:
// not known, because the task calls another collective, or no lab or one server alone is used.
// Pure.
std::vector<Seconds> all_reduce_bounds(const BenchTask& task, const TestEnvironment& environment);

struct RegattaRun {
  std::vector<Contender> contenders;
  // Rank 0's final choices for private buffers; none where their text has kTuningMax bytes or more.
  std::vector<comm::TuningChoice> choices;
};

// "private" with ordinary memory, and without a lab "shared" with buffers of
// Communicator::allocate(); then the task's compression by its name. Fails with the first error of
// a rank, and with kInvalidInput, before any starts, outside of these: 1 to kRanksMax ranks, each
// with a place in a lab, up to kSizesMax sizes with an element for each rank, 1 to kBatchesMax
// batches, less than kTuningMax bytes of tuning.
Result<RegattaRun> run_regatta_ranks(const BenchTask& task, const TestEnvironment& environment);

}  // namespace regatta::bench
