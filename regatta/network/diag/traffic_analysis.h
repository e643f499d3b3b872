// diag/traffic_analysis.h: attributes recorded traffic to jobs, ranks, collectives and steps, finds
// its bursts, and infers jobs and steps from the flows alone for comparison. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/diag/internal/traffic_record.h"
#include "regatta/network/diag/step_time.h"
#include "regatta/network/diag/traffic_bursts.h"

namespace regatta::diag {

struct BurstEvent {
  Seconds at;  // after the start of the record
  Seconds length;
  Bytes bytes;
  BytesPerSecond peak;
  bool is_hidden = false;  // averages over a second do not show it
  std::string operation;   // of the sender at that time; empty: none
  int step = -1;           // of the sender, counted from the first complete one; -1: none
};

struct OperationBytes {
  std::string operation;  // "all_reduce of 4 MiB"; empty: while no operation ran
  Bytes bytes;
};

// All connections from one rank to another.
struct PairTraffic {
  std::string from;  // "rank 0 (s0)"
  std::string to;
  Bytes bytes;
  Peaks peaks;
  std::vector<BurstEvent> bursts;
  std::vector<OperationBytes> operations;  // most bytes first
  std::uint64_t retransmits = 0;
  Seconds round_trip;  // the longest of its connections
};

struct JobTraffic {
  std::string job;
  std::uint64_t world = 0;  // tells jobs of one name apart
  std::size_t ranks = 0;    // observed
  std::vector<PairTraffic> pairs;
  std::vector<double> bytes;  // by interval
  Peaks peaks;
  std::optional<Seconds> step_by_ranks;  // from the ranks' records, over the same time
  std::optional<StepTiming> steps;       // from the flows; none: they have no period
  // The steps may be stated: they are clear, and differ by at most 10 % from those of the ranks.
  bool is_clear = false;
};

// A job inferred from the flows alone.
struct InferredJob {
  std::vector<std::string> servers;
  std::size_t flows = 0;
  std::optional<StepTiming> steps;
  bool is_clear = false;          // as of JobTraffic
  std::vector<std::string> jobs;  // jobs of these flows, for comparison; "": no job
};

struct TrafficAnalysis {
  Seconds duration;
  Seconds interval;
  std::vector<JobTraffic> jobs;
  std::vector<InferredJob> inferred;
  Bytes other_bytes;  // of no known rank
  double cost = 0;
  std::size_t connections = 0;
  std::vector<std::string> polarisation;  // findings from the counters of the switches
};

TrafficAnalysis analyze_traffic(const TrafficRecord& record);

// Rates by pair of ranks; cheap enough to run once a second.
struct JobRates {
  std::string job;
  std::string from;
  std::string to;
  Peaks peaks;
};
std::vector<JobRates> job_rates(const TrafficRecord& record);

// Start times of the rank's steps, from its own record: the order of its collectives repeats. Empty
// when it does not, or fewer than three times.
std::vector<Seconds> steps_of(const WatchedRank& rank);

}  // namespace regatta::diag
