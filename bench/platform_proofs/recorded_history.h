// platform_proofs/recorded_history.h: what concurrent clients of the controller asked and were
// answered, with the times.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/platform_proofs/linearizability_checker.h"
#include "bench/platform_proofs/object_models.h"
#include "bench/platform_proofs/platform_programs.h"
#include "regatta/base/core/result.h"

namespace regatta::platform_proofs {

struct RecordedJobOperation {
  std::uint32_t job = 0;  // number of the job in the recording
  TimedOperation<JobOperation> timed;
};

// A page of the list of jobs.
struct RecordedList {
  std::int64_t called_ns = 0;
  std::int64_t ended_ns = 0;
  std::int64_t revision = 0;
  std::int64_t next = 0;  // jobs from this number on are in it
  struct Item {
    std::uint32_t job;
    JobFields fields;
  };
  std::vector<Item> items;
};

struct RecordedHistory {
  std::vector<RecordedJobOperation> jobs;
  std::vector<TimedOperation<IntentOperation>> intents;
  std::vector<RecordedList> lists;
  std::string error;  // an answer that no request may get; "": none

  std::size_t size() const { return jobs.size() + intents.size() + lists.size(); }
  void append(RecordedHistory&& other);
};

struct RecordingOptions {
  std::size_t operations = 20'000;
  int clients = 16;
  std::uint64_t seed = 1;
  Seconds kill_every{2};  // mean time between two kills of the controller; 0: none
};

struct Recording {
  RecordedHistory history;
  std::vector<std::int64_t> kills_ns;  // when the killed controllers were gone
  std::vector<Seconds> recoveries;     // from a kill to a controller that serves
  Seconds time;
};

// Runs clients against the controller, which it kills and starts again, and once at the end: a
// request without an answer can take effect only while the process lives that has its connection.
Result<Recording> record_history(PlatformPrograms& programs, const RecordingOptions& options);

// Compares the lists, and all revisions that were seen, with one order of all changes: a list of
// revision R has every job as the latest change up to R left it; it is not older than what was
// answered before it was asked for, and not newer than what was asked for after it. A sentence for
// each contradiction, at most ten.
std::vector<std::string> list_anomalies(const RecordedHistory& history);

}  // namespace regatta::platform_proofs
