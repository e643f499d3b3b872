// cli/internal/traffic_analysis.h: from what was seen of the traffic to what it means: which job
// and ranks it belongs to, during which collective and step, where the bursts are; and beside that
// what the flows alone say of jobs and steps. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/app/cli/internal/traffic_record.h"
#include "regatta/base/core/units.h"
#include "regatta/network/diag/step_time.h"
#include "regatta/network/diag/traffic_bursts.h"

namespace regatta::cli {

struct BurstEvent {
  Seconds at;  // after the start of the record
  Seconds length;
  Bytes bytes;
  BytesPerSecond peak;
  bool is_hidden = false;  // from who looks once a second
  std::string operation;   // that the sender was at; empty: none
  int step = -1;           // of the sender, counted from the first that was seen whole; -1: none
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
  diag::Peaks peaks;
  std::vector<BurstEvent> bursts;
  std::vector<OperationBytes> operations;  // most bytes first
  std::uint64_t retransmits = 0;
  Seconds round_trip;  // the longest of its connections
};

struct JobTraffic {
  std::string job;
  std::uint64_t world = 0;  // tells jobs of one name apart
  std::size_t ranks = 0;    // that are watched
  std::vector<PairTraffic> pairs;
  std::vector<double> bytes;  // by interval
  diag::Peaks peaks;
  std::optional<Seconds> step_by_ranks;   // what their own records say, over the same time
  std::optional<diag::StepTiming> steps;  // what the flows say
  bool is_too_short = false;              // the look, to tell steps: then the flows say nothing
};

// What flows alone say: nothing of ranks went into it.
struct InferredJob {
  std::vector<std::string> servers;
  std::size_t flows = 0;
  std::optional<diag::StepTiming> steps;
  bool is_too_short = false;
  std::vector<std::string> jobs;  // whose flows these are, for comparison; "" for no job's
};

struct TrafficAnalysis {
  Seconds duration;
  Seconds interval;
  std::vector<JobTraffic> jobs;
  std::vector<InferredJob> inferred;
  Bytes other_bytes;  // of no rank that is known
  double cost = 0;
  std::size_t connections = 0;
  std::vector<std::string> polarisation;  // what the switches' counters say of their hashes
};

TrafficAnalysis analyze_traffic(const TrafficRecord& record);

// The same without what it means: fit for once a second.
struct JobRates {
  std::string job;
  std::string from;
  std::string to;
  diag::Peaks peaks;
};
std::vector<JobRates> job_rates(const TrafficRecord& record);

// Whether so many steps, so alike, are no accident: what is random seems to repeat over a few, and
// parts of a step do in a look that is shorter than it.
bool is_regular(const diag::StepTiming& steps);

// When each step of the rank began, by its own record: its collectives follow each other in the
// same order again and again. Empty when they do not, or fewer than three times.
std::vector<Seconds> steps_of(const WatchedRank& rank);

}  // namespace regatta::cli
