// sharing/internal/swap/checkpoint.h: takes another process off its GPUs, and brings it back, by
// the driver's checkpoint calls: all its device memory goes to the host, whatever it is, and its
// calls of the driver wait meanwhile. May take as long as the driver does, so it is done in a
// process of its own, which can be ended. Source: CUDA driver API, "CUDA Checkpointing".
#pragma once

#include <cstdint>
#include <string>

#include <sys/types.h>

#include "regatta/base/core/units.h"

namespace regatta::sharing {

enum class CheckpointAction : std::uint8_t {
  kProbe,  // whether the driver has the calls
  kOut,
  kIn,
};
// Where the driver says that the process is after that.
enum class CheckpointOutcome : std::uint8_t {
  kDone,       // where it was to be, perhaps before
  kLater,      // its work did not end in time; it is as it was
  kStillHere,  // it cannot leave; it goes on
  kStillAway,  // it cannot come back
  kLocked,     // its memory is on its GPUs, but its calls of the driver wait
  kBroken,     // the driver has given it up: its calls fail, and what it had may be on its GPUs
  kUnknown,    // the driver does not say
  kMissing,    // there is no driver, or an older one
};

// In this process, which uses the driver from then on. `library`: the driver's. `lock_time`: how
// long work that was given may take to end, from a millisecond to seven weeks; in whole
// milliseconds, and none would mean for ever. Each step begins where an earlier one, that was ended
// in the middle, left the process.
CheckpointOutcome run_checkpoint(const std::string& library, CheckpointAction action, pid_t pid,
                                 Seconds lock_time);

// The same in a process that is started for it, and that dies with this one; -1: it could not be
// started. Only where this process has one thread.
pid_t start_checkpoint(const std::string& library, CheckpointAction action, pid_t pid,
                       Seconds lock_time);
// What came of it, by the status of its end.
CheckpointOutcome checkpoint_outcome(int wait_status);

}  // namespace regatta::sharing
