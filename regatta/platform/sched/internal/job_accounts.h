// sched/internal/job_accounts.h: the account of each job of a state in the usage of quotas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/platform/sched/decide.h"

namespace regatta::sched {

// A job is named by its request in the snapshot or the queue, which outlive this and stay where
// they are: its place there tells its number without a search.
class JobAccounts {
 public:
  JobAccounts(const ClusterSnapshot& snapshot, const JobQueue& queue)
      : running_(address_of(snapshot.running.data())),
        pending_(address_of(queue.jobs.data())),
        running_jobs_(snapshot.running.size()),
        accounts_(snapshot.running.size() + queue.jobs.size()) {}

  int& at(const JobRequest* job) { return accounts_.at(number_of(job)); }
  int at(const JobRequest* job) const { return accounts_.at(number_of(job)); }

 private:
  static std::uintptr_t address_of(const void* object) {
    return reinterpret_cast<std::uintptr_t>(object);
  }

  std::size_t number_of(const JobRequest* job) const {
    // An address below the first running job wraps around to a large number.
    const std::size_t running = (address_of(job) - running_) / sizeof(RunningJob);
    if (running < running_jobs_) return running;
    return running_jobs_ + (address_of(job) - pending_) / sizeof(PendingJob);
  }

  std::uintptr_t running_;
  std::uintptr_t pending_;
  std::size_t running_jobs_;
  std::vector<int> accounts_;
};

}  // namespace regatta::sched
