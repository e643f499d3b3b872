// trainer/internal/gang_coordinator.h: rank 0 of a training gang beside its own worker: gathers the
// ranks, plans, hands each its part, lets the workers find each other, and writes what they
// measure.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/os/socket.h"
#include "regatta/model/workload/job.h"

namespace regatta::trainer {

struct CoordinatorOptions {
  os::HostPort listen;
  std::string gang;  // "JOB.ATTEMPT": a rank of another one is refused
  int world_size = 1;
  workload::Job job;
  std::string metrics_file;  // "": none
};

class GangCoordinator {
 public:
  // Listens at once, so that ranks can connect.
  static Result<GangCoordinator> listen(CoordinatorOptions options);
  GangCoordinator(GangCoordinator&&) noexcept;
  GangCoordinator& operator=(GangCoordinator&&) noexcept;
  ~GangCoordinator();

  // Until all ranks have ended well. Fails with the sentence of the first cause: a rank that is
  // missing after 120 s, no plan that fits, an error of a worker, a connection that ends. Writes
  // progress to standard output. Ends early, without an error, when `stop` is set.
  Status run(const std::atomic<bool>& stop);

 private:
  struct Impl;
  explicit GangCoordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::trainer
