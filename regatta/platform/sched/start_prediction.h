// sched/start_prediction.h: when pending jobs will start, how sure that is, and what they wait for.
// Sources: Smith, Taylor and Foster, "Using run-time predictions to estimate queue wait times",
// JSSPP 1999 (simulating the queue forward); Vovk, Gammerman and Shafer, "Algorithmic learning in a
// random world", 2005 (conformal intervals).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"

namespace regatta::sched {

// Times of the snapshot's clock. `earliest` and `latest` bound 80 % of what may happen.
struct StartPrediction {
  std::string job;
  Seconds start;  // the median
  Seconds earliest;
  Seconds latest;
};

struct StartForecastOptions {
  int samples = 16;  // of run times and arrivals; at least 1
  std::uint64_t seed = 1;
  Seconds decision_interval;  // of the scheduler
  // Jobs that were submitted in the recent past, by rising time: those to come are taken to be like
  // them and as frequent. Empty: none will come.
  std::vector<JobRequest> recent;
};

// Plays the queue forward with run times drawn from what is known of each job; running jobs are
// known to have run until now. Jobs start in the order of the policy on any place where they fit;
// backfill and evictions by service level are the policy's. It leaves out quotas, CPU, memory, other
// evictions, moves and resizing; the free shares of a node count as one amount. A job that no sample starts within 60 days has infinite
// times. `jobs` are names of pending jobs; empty: all. Fails with kNotFound where one is not
// pending.
Result<std::vector<StartPrediction>> predict_starts(const ClusterSnapshot& snapshot,
                                                    const JobQueue& queue,
                                                    const SchedulingPolicy& policy,
                                                    const std::vector<std::string>& jobs,
                                                    const StartForecastOptions& options);

// Learns from the starts of jobs how far predictions were off, and moves later ones so that 80 % of
// the starts lie in their intervals. It compares predictions with waits of similar length, forgets
// old ones, and counts jobs that still wait as starting later than now. Not thread-safe.
// Source of the last: Kaplan and Meier, JASA 53, 1958.
class StartCalibration {
 public:
  // A prediction as predict_starts() made it, at the time `predicted_at`.
  void add(const StartPrediction& predicted, Seconds predicted_at);
  // The job has started; nothing where its prediction is not known.
  void add_start(std::string_view job, Seconds started);
  StartPrediction calibrated(StartPrediction prediction, Seconds predicted_at) const;

 private:
  static constexpr int kBins = 8;
  struct Record {
    std::string job;
    double wait = 0;    // predicted
    double spread = 0;  // of its logarithm
    Seconds at;
    std::optional<Seconds> started;
  };
  using Records = std::deque<Record>;  // oldest first
  struct Error {
    double value = 0;
    bool is_start = false;  // else the error is larger
  };
  static std::size_t bin_of(double wait);
  static std::vector<Error> errors_of(const Records& records, Seconds now);

  std::array<Records, kBins> bins_;
};

// A running job that holds what another one waits for.
struct BlockingJob {
  std::string job;
  int devices = 0;
  Seconds ends;  // the median; infinite where it is not known
};

// The fewest running jobs whose end would let a pending job start, as a search node by node finds
// them; among as few, those that end first.
struct BlockingSet {
  int devices = 0;       // that the job asks for
  int free_devices = 0;  // of them, where it would run
  std::vector<BlockingJob> jobs;
  // The largest number of devices with which it would start now; 0: none.
  int startable_devices = 0;
  bool never_fits = false;  // not even the empty cluster holds it
  // "waits for 2 of 4 devices of type T under one leaf; held by job a for about 25 min; would start
  // now with 2 devices"
  std::string sentence;
};

// Fails with kNotFound where `job` is not pending.
Result<BlockingSet> blocking_set(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                 std::string_view job);

}  // namespace regatta::sched
