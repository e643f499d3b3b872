// trainer/internal/gang_rank.h: one rank of a training gang: introduces itself to rank 0, starts a
// worker with what it gets, and passes lines between the two.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/os/socket.h"
#include "regatta/platform/trainer/gang_plan.h"

namespace regatta::trainer {

struct RankOptions {
  os::HostPort coordinator;
  std::string gang;  // "JOB.ATTEMPT"
  GangMember member;
  std::string worker;  // path of regatta-worker
};

// Returns when the worker has ended well. Fails with the cause that rank 0 or the worker named; the
// worker is gone then. One thread, which lives as long as the process, makes the call.
Status run_rank(const RankOptions& options);

}  // namespace regatta::trainer
