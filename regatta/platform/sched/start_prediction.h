// sched/start_prediction.h: when pending jobs will start, how sure that is, and what they wait for.
// Sources: Smith, Taylor and Foster, "Using run-time predictions to estimate queue wait times",
// JSSPP 1999 (simulating the queue forward); Vovk, Gammerman and Shafer, "Algorithmic learning in a
// random world", 2005 (conformal intervals).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
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
  // The run time of a job that waits, runs or may come, as far as it is known by now: its end is
  // drawn by it, while decisions go by its request, which may be older. Empty: as the request says.
  std::function<RunTime(const JobRequest&)> run_time;
};

// Plays the queue forward with run times drawn from what is known of each job; running jobs are
// known to have run until now. Each decision considers jobs as decide() does: by the fair shares of
// now, levels of service, ageing, limits of queues and of device types, all resources of nodes,
// spares, the first reservation, evictions by priority and level, and moves. It leaves out what
// queues take back, devices that are shared by mixing, resizing, subgroups and failures: degraded
// gangs keep their places. The shares of the devices of a node count as one amount. A job that no
// sample starts within 60 days has infinite times; one that waits for more than 3,000 decisions is
// taken to start after these. `jobs` are names of pending jobs; empty: all.
// Fails with kNotFound where one is not pending, with kInvalidInput where a job names a queue that
// is no leaf.
Result<std::vector<StartPrediction>> predict_starts(const ClusterSnapshot& snapshot,
                                                    const JobQueue& queue,
                                                    const SchedulingPolicy& policy,
                                                    const std::vector<std::string>& jobs,
                                                    const StartForecastOptions& options);

// The pending jobs without a known run time that keep a pending job from having a predicted start,
// in the order in which they start themselves: if they ended after a second it would have one.
// Empty: that is not the reason. Fails as predict_starts() does.
Result<std::vector<std::string>> endless_jobs_before(const ClusterSnapshot& snapshot,
                                                     const JobQueue& queue,
                                                     const SchedulingPolicy& policy,
                                                     const std::string& job,
                                                     const StartForecastOptions& options);

// Learns from the starts of jobs how far predictions were off, and moves later ones so that 80 % of
// the starts lie in their intervals. It compares predictions with waits of similar length, forgets
// old ones, and counts jobs that still wait as starting later than now (Kaplan and Meier, JASA 53,
// 1958). Intervals become wider with each start outside its own and narrower with each inside
// (Gibbs and Candes, "Adaptive conformal inference under distribution shift", NeurIPS 2021). The
// start itself is moved only while that has made the errors of the latest starts smaller. Not
// thread-safe.
class StartCalibration {
 public:
  // A prediction as predict_starts() made it at the time `predicted_at`, and calibrated.
  void add(const StartPrediction& predicted, const StartPrediction& calibrated,
           Seconds predicted_at);
  // The job has started; nothing where its prediction is not known.
  void add_start(std::string_view job, Seconds started);
  StartPrediction calibrated(StartPrediction prediction, Seconds predicted_at) const;

 private:
  static constexpr int kBins = 8;
  struct Record {
    double wait = 0;    // predicted
    double spread = 0;  // of its logarithm
    StartPrediction calibrated;
    Seconds at;
    std::optional<Seconds> started;
    Seconds raw_start;
    Seconds moved_start;
  };
  // The distance of a start from the prediction, over the time waited.
  struct StartErrors {
    double raw = 0;
    double moved = 0;
  };
  using Records = std::deque<Record>;  // oldest first
  struct Error {
    double value = 0;
    bool is_start = false;  // else the error is larger
  };
  static std::size_t bin_of(double wait);
  static void add_errors(const Records& records, Seconds now, std::vector<Error>& errors);

  // By the errors of earlier ones, in any case.
  StartPrediction moved(StartPrediction prediction, Seconds predicted_at) const;
  bool moves_starts() const;

  std::array<Records, kBins> bins_;
  std::deque<StartErrors> start_errors_;  // the latest
  double log_width_ = 0;                  // of intervals, over those that the errors give
};

// A running job that holds what another one waits for.
struct BlockingJob {
  std::string job;
  int devices = 0;
  Seconds ends;              // the median; infinite where it is not known
  bool is_degraded = false;  // it runs no more until nodes or devices return: no end is known
};

// A limit of the queue of a pending job, of a queue above it, or of its user there, and the fewest
// running jobs below it whose end would let the job pass; none: it asks for more than the limit.
struct BlockingLimit {
  std::string queue;
  std::string user;  // "": the limit is the queue's
  Resource resource = Resource::kCompute;
  std::string device_type;  // "": the limit counts devices of all types
  long long limit = 0;
  long long missing = 0;
  std::vector<BlockingJob> jobs;
};

// The fewest running jobs whose end would let a pending job start if no other one waited, as a
// search node by node finds them; among as few, those that end first. Shares of the devices of a
// node count as one amount, but where that does not suffice: then it is the jobs that end first,
// without those that are needless. Devices that the job would share by mixing do not count.
struct BlockingSet {
  ResourceAmounts wanted;
  std::vector<BlockingLimit> limits;  // in the way, the lowest first
  // On the nodes where it would run once the jobs at the limits have ended.
  ResourceAmounts missing;
  std::vector<BlockingJob> jobs;
  int devices = 0;       // that the job asks for
  int free_devices = 0;  // of them, where it would run
  // The largest number of devices with which it would start now; 0: none.
  int startable_devices = 0;
  // Not ready, or with failed devices: not even the end of all jobs lets it start before these
  // return.
  std::vector<std::string> nodes;
  // Its queue is guaranteed what it takes, and the policy takes that back from others in time.
  bool is_owed = false;
  bool never_fits = false;  // not even the empty cluster and an empty queue let it start
  // "waits for 2 of 4 devices of type T under one leaf; held by job a for about 25 min; would start
  // now with 2 devices", "waits for 8 devices of the limit of queue a; held by job b for about 1 h"
  std::string sentence;
};

// The policy says which spares are kept free, and whether a smaller size would start. Fails with
// kNotFound where `job` is not pending, with kInvalidInput where a job names a queue that is no
// leaf.
Result<BlockingSet> blocking_set(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                 const SchedulingPolicy& policy, std::string_view job);

}  // namespace regatta::sched
