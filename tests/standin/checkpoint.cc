// Checkpoints: a process is locked, its memory goes to the host and comes back. The process that
// requests it sends a message to the device, which forwards it to the other process; a thread of
// its connection carries it out.
#include "tests/standin/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

#include "tests/standin/api.h"
#include "tests/standin/process.h"
#include "tests/standin/share.h"

namespace regatta::standin {
namespace {

struct State {
  std::atomic<int> calls = 0;
  std::atomic<CUprocessState> state = CU_PROCESS_STATE_RUNNING;
  std::mutex mutex;        // one control after the other
  bool is_spoilt = false;  // guarded by mutex: a restore found no room
};
State& state() {
  static auto* const only = new State;  // threads use it until the very end
  return *only;
}

void change(CUprocessState to) {
  state().state = to;
  state().state.notify_all();
}

bool is_idle() {
  struct Question {
    DeviceConnection* link;
    std::uint64_t stream;
    std::uint64_t sequence;
  };
  std::vector<Question> questions;
  {
    const std::lock_guard lock(process().mutex);
    for (const CUstream stream : process().streams)
      questions.push_back({&stream->context->device->link, stream->id, stream->submitted});
  }
  return std::ranges::all_of(questions, [](const Question& one) {
    return one.link
               ->call({.message = PacketType::kQueryStream,
                       .stream = one.stream,
                       .sequence = one.sequence})
               .status == 1;
  });
}

// Nothing new begins; what is under way ends first.
CUresult lock(std::chrono::milliseconds timeout) {
  if (state().state != CU_PROCESS_STATE_RUNNING) return CUDA_ERROR_ILLEGAL_STATE;
  const auto end = std::chrono::steady_clock::now() + timeout;
  change(CU_PROCESS_STATE_LOCKED);
  while (state().calls != 0 || !is_idle()) {
    if (timeout.count() != 0 && std::chrono::steady_clock::now() >= end) {
      change(CU_PROCESS_STATE_RUNNING);
      return CUDA_ERROR_NOT_READY;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return CUDA_SUCCESS;
}

// Memory that other processes know of, theirs, and managed memory cannot be taken away.
bool is_bound() {
  const std::lock_guard lock(process().mutex);
  return shares_mappings() || std::ranges::any_of(process().regions, [](const auto& entry) {
           return entry.second.opened || entry.second.share != 0 ||
                  entry.second.kind == RegionKind::kManaged;
         });
}

// Does `move` as a copy of all that the device holds for this process.
bool move_memory(DeviceState& device, Engine engine, const std::function<void()>& move) {
  CUstream stream = nullptr;
  std::uint64_t sequence = 0;
  {
    const std::lock_guard lock(process().mutex);
    for (const CUcontext context : process().contexts)
      if (context->device == &device) stream = context->legacy;
    if (stream != nullptr)
      sequence = submit(*stream, {.kind = OpKind::kCopy,
                                  .engine = engine,
                                  .bytes = device.arena.held_bytes(),
                                  .action = move});
  }
  if (stream == nullptr) {
    move();
    return true;
  }
  return device.link
             .call({.message = PacketType::kWaitStream, .stream = stream->id, .sequence = sequence})
             .status == 1;
}

CUresult check_out() {
  if (state().state != CU_PROCESS_STATE_LOCKED) return CUDA_ERROR_ILLEGAL_STATE;
  if (is_bound()) {
    change(CU_PROCESS_STATE_FAILED);
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  for (const auto& device : process().devices) {
    Arena& arena = device->arena;
    if (!move_memory(*device, Engine::kToHost, [&] { arena.save(); }) ||
        device->link.call({.message = PacketType::kSuspend}).status != 1) {
      change(CU_PROCESS_STATE_FAILED);
      return CUDA_ERROR_UNKNOWN;
    }
  }
  change(CU_PROCESS_STATE_CHECKPOINTED);
  return CUDA_SUCCESS;
}

CUresult restore() {
  if (state().state != CU_PROCESS_STATE_CHECKPOINTED) return CUDA_ERROR_ILLEGAL_STATE;
  if (state().is_spoilt) return CUDA_ERROR_OPERATING_SYSTEM;
  const auto& devices = process().devices;
  for (auto at = devices.begin(); at != devices.end(); ++at) {
    if ((*at)->link.call({.message = PacketType::kResume}).status == 1) continue;
    for (auto before = devices.begin(); before != at; ++before)
      (*before)->link.call({.message = PacketType::kSuspend});
    state().is_spoilt = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  for (const auto& device : devices) {
    Arena& arena = device->arena;
    if (move_memory(*device, Engine::kToDevice, [&] { arena.restore(); })) continue;
    change(CU_PROCESS_STATE_FAILED);
    return CUDA_ERROR_UNKNOWN;
  }
  change(CU_PROCESS_STATE_LOCKED);
  return CUDA_SUCCESS;
}

CUresult unlock() {
  if (state().state != CU_PROCESS_STATE_LOCKED) return CUDA_ERROR_ILLEGAL_STATE;
  change(CU_PROCESS_STATE_RUNNING);
  return CUDA_SUCCESS;
}

CUresult handle_control(const Packet& control, std::uint64_t* value) {
  switch (static_cast<Control>(control.sequence)) {
    case Control::kGetState:
      *value = static_cast<std::uint64_t>(state().state);
      return CUDA_SUCCESS;
    case Control::kGetThread:
      *value = static_cast<std::uint64_t>(::syscall(SYS_gettid));
      return CUDA_SUCCESS;
    case Control::kLock:
      return lock(std::chrono::milliseconds(control.time_ns / 1'000'000));
    case Control::kCheckpoint:
      return check_out();
    case Control::kRestore:
      return restore();
    case Control::kUnlock:
      return unlock();
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// Works for another process and for this one.
CUresult control(int pid, Control what, std::int64_t timeout_ns = 0,
                 std::uint64_t* value = nullptr) {
  std::vector<DeviceConnection*> links;
  {
    const std::lock_guard guard(process().mutex);
    if (!process().is_started || process().is_forked) return CUDA_ERROR_NOT_INITIALIZED;
    for (const auto& device : process().devices)
      links.push_back(&device->link);
  }
  if (pid == 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (pid < 0 || (::kill(pid, 0) != 0 && errno == ESRCH)) return CUDA_ERROR_INVALID_VALUE;
  for (DeviceConnection* const link : links) {
    const Packet reply = link->call({.message = PacketType::kControl,
                                     .sequence = static_cast<std::uint64_t>(what),
                                     .time_ns = timeout_ns,
                                     .width = static_cast<std::uint32_t>(pid)});
    if (reply.status != 1) continue;
    if (value != nullptr) *value = reply.bytes;
    return static_cast<CUresult>(reply.sequence);
  }
  return CUDA_ERROR_NOT_INITIALIZED;  // the driver was not used there
}

template <typename Arguments>
bool is_zero(const Arguments* arguments) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(arguments);
  return arguments == nullptr || std::all_of(bytes, bytes + sizeof(Arguments),
                                             [](unsigned char byte) { return byte == 0; });
}

}  // namespace

Packet handle_control(const Packet& control) {
  const std::lock_guard lock(state().mutex);
  Packet done{.message = PacketType::kControlDone, .ticket = control.ticket};
  done.sequence = static_cast<std::uint64_t>(handle_control(control, &done.bytes));
  return done;
}

CallScope::CallScope() {
  if (process().is_forked) return;
  for (;;) {
    state().calls.fetch_add(1);
    const CUprocessState now = state().state;
    is_counted_ = now == CU_PROCESS_STATE_RUNNING;
    if (is_counted_) return;
    state().calls.fetch_sub(1);
    if (now == CU_PROCESS_STATE_FAILED) {
      refusal_ = CUDA_ERROR_UNKNOWN;
      return;
    }
    state().state.wait(now);
  }
}

CallScope::~CallScope() {
  if (is_counted_) state().calls.fetch_sub(1);
}

}  // namespace regatta::standin

using namespace regatta::standin;

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuCheckpointProcessGetState(int pid, CUprocessState* state) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t value = 0;
  const CUresult result = control(pid, Control::kGetState, 0, &value);
  if (result == CUDA_SUCCESS) *state = static_cast<CUprocessState>(value);
  return result;
}

CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int* thread) {
  if (thread == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t value = 0;
  const CUresult result = control(pid, Control::kGetThread, 0, &value);
  if (result == CUDA_SUCCESS) *thread = static_cast<int>(value);
  return result;
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* arguments) {
  CUcheckpointLockArgs rest = arguments == nullptr ? CUcheckpointLockArgs{} : *arguments;
  const unsigned timeout_ms = std::exchange(rest.timeoutMs, 0U);
  if (!is_zero(&rest)) return CUDA_ERROR_INVALID_VALUE;
  return control(pid, Control::kLock, std::int64_t{timeout_ms} * 1'000'000);
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* arguments) {
  return is_zero(arguments) ? control(pid, Control::kCheckpoint) : CUDA_ERROR_INVALID_VALUE;
}

// Onto the same devices.
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* arguments) {
  return is_zero(arguments) ? control(pid, Control::kRestore) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* arguments) {
  return is_zero(arguments) ? control(pid, Control::kUnlock) : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
