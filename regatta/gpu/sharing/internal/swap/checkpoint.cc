#include "regatta/gpu/sharing/internal/swap/checkpoint.h"

#include <csignal>
#include <optional>

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/device/abi/checkpoint.h"

namespace regatta::sharing {
namespace {

struct Calls {
  CUresult (*start)(unsigned) = nullptr;
  CheckpointGetState* get_state = nullptr;
  CheckpointLock* lock = nullptr;
  CheckpointOut* out = nullptr;
  CheckpointRestore* restore = nullptr;
  CheckpointUnlock* unlock = nullptr;

  bool are_complete() const {
    return start != nullptr && get_state != nullptr && lock != nullptr && out != nullptr &&
           restore != nullptr && unlock != nullptr;
  }
};

Calls find_calls(const std::string& path) {
  Calls calls;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return calls;
  os::find_symbol(library, "cuInit", calls.start);
  os::find_symbol(library, "cuCheckpointProcessGetState", calls.get_state);
  os::find_symbol(library, "cuCheckpointProcessLock", calls.lock);
  os::find_symbol(library, "cuCheckpointProcessCheckpoint", calls.out);
  os::find_symbol(library, "cuCheckpointProcessRestore", calls.restore);
  os::find_symbol(library, "cuCheckpointProcessUnlock", calls.unlock);
  return calls;
}

// kLater, or none: the driver tells the result when it is asked for the process's state.
std::optional<CheckpointOutcome> swap_out(const Calls& calls, pid_t pid, CUprocessState state,
                                          Seconds lock_time) {
  if (state == CU_PROCESS_STATE_RUNNING) {
    CUcheckpointLockArgs arguments{};
    arguments.timeoutMs = static_cast<unsigned>(lock_time.value * 1e3);
    const CUresult locked = calls.lock(pid, &arguments);
    if (locked == CUDA_ERROR_NOT_READY) return CheckpointOutcome::kLater;
    if (locked != CUDA_SUCCESS) return std::nullopt;
    state = CU_PROCESS_STATE_LOCKED;
  }
  if (state == CU_PROCESS_STATE_LOCKED && calls.out(pid, nullptr) != CUDA_SUCCESS)
    calls.unlock(pid, nullptr);  // the process continues if the driver left it whole
  return std::nullopt;
}

void bring_in(const Calls& calls, pid_t pid, CUprocessState state) {
  if (state == CU_PROCESS_STATE_CHECKPOINTED && calls.restore(pid, nullptr) == CUDA_SUCCESS)
    state = CU_PROCESS_STATE_LOCKED;
  if (state == CU_PROCESS_STATE_LOCKED) calls.unlock(pid, nullptr);
}

CheckpointOutcome outcome_in(CUprocessState state, CheckpointAction action) {
  const bool comes = action == CheckpointAction::kIn;
  switch (state) {
    case CU_PROCESS_STATE_RUNNING:
      return comes ? CheckpointOutcome::kDone : CheckpointOutcome::kStillHere;
    case CU_PROCESS_STATE_LOCKED:
      return CheckpointOutcome::kLocked;
    case CU_PROCESS_STATE_CHECKPOINTED:
      return comes ? CheckpointOutcome::kStillAway : CheckpointOutcome::kDone;
    case CU_PROCESS_STATE_FAILED:
      return CheckpointOutcome::kBroken;
    default:
      return CheckpointOutcome::kUnknown;
  }
}

}  // namespace

CheckpointOutcome run_checkpoint(const std::string& library, CheckpointAction action, pid_t pid,
                                 Seconds lock_time) {
  const Calls calls = find_calls(library);
  if (!calls.are_complete()) return CheckpointOutcome::kMissing;
  if (action == CheckpointAction::kProbe) return CheckpointOutcome::kDone;
  CUprocessState state = CU_PROCESS_STATE_FAILED;
  // Only a process that has initialized the driver can restore another.
  if (calls.start(0) != CUDA_SUCCESS || calls.get_state(pid, &state) != CUDA_SUCCESS)
    return CheckpointOutcome::kUnknown;
  if (action == CheckpointAction::kIn) {
    bring_in(calls, pid, state);
  } else if (const auto later = swap_out(calls, pid, state, lock_time)) {
    return *later;
  }
  if (calls.get_state(pid, &state) != CUDA_SUCCESS) return CheckpointOutcome::kUnknown;
  return outcome_in(state, action);
}

pid_t start_checkpoint(const std::string& library, CheckpointAction action, pid_t pid,
                       Seconds lock_time) {
  const pid_t parent = ::getpid();
  const pid_t made = ::fork();
  if (made != 0) return made;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(static_cast<int>(CheckpointOutcome::kUnknown));
  // The lock of the state and the connections belong to the parent.
  if (!os::close_descriptors_from(3)) ::_exit(static_cast<int>(CheckpointOutcome::kUnknown));
  ::_exit(static_cast<int>(run_checkpoint(library, action, pid, lock_time)));
}

CheckpointOutcome checkpoint_outcome(int wait_status) {
  if (!WIFEXITED(wait_status)) return CheckpointOutcome::kUnknown;
  const int status = WEXITSTATUS(wait_status);
  return status <= static_cast<int>(CheckpointOutcome::kMissing)
             ? static_cast<CheckpointOutcome>(status)
             : CheckpointOutcome::kUnknown;
}

}  // namespace regatta::sharing
