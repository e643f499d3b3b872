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
// The state of the process after that, by the driver.
enum class CheckpointOutcome : std::uint8_t {
  kDone,       // in the requested state, perhaps already before
  kLater,      // its work did not end in time; nothing changed
  kStillHere,  // it cannot leave; it continues
  kStillAway,  // it cannot come back
  kLocked,     // its memory is on its GPUs, but its calls of the driver wait
  kBroken,     // the driver gave up: its calls fail, and its memory may be on its GPUs
  kUnknown,    // the driver does not say
  kMissing,    // there is no driver, or an older one
};

// Runs in this process, which uses the driver from then on. `library`: the driver. `lock_time`: how
// long work in progress may take to end, from a millisecond to seven weeks, in whole milliseconds.
// Each step continues where an interrupted one left the process.
CheckpointOutcome run_checkpoint(const std::string& library, CheckpointAction action, pid_t pid,
                                 Seconds lock_time);

// Runs it in a helper process, which dies with this one; -1: it could not be started. Only in a
// process with one thread.
pid_t start_checkpoint(const std::string& library, CheckpointAction action, pid_t pid,
                       Seconds lock_time);
// The result of a helper, by its exit status.
CheckpointOutcome checkpoint_outcome(int wait_status);

}  // namespace regatta::sharing
