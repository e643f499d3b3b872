// tests/standin/checkpoint.h: a process that is taken off its devices and brought back, as another
// process wants it.
#pragma once

#include <cstdint>
#include <string_view>

#include "regatta/gpu/device/abi/checkpoint.h"
#include "tests/standin/wire.h"

namespace regatta::standin {

// A request of one process to another; in Packet::sequence.
enum class Control : std::uint64_t { kGetState, kGetThread, kLock, kCheckpoint, kRestore, kUnlock };

// Does it in this process; any thread that is not in a call.
Packet handle_control(const Packet& control);

// Whether a call of this name goes on while its process is locked: it has nothing to do with a
// device.
constexpr bool passes_lock(std::string_view name) {
  return name.starts_with("cuCheckpoint") || name.starts_with("cuGet") ||
         name.starts_with("cuDeviceGet") || name == "cuInit" || name == "cuDriverGetVersion" ||
         name == "cuCtxGetCurrent";
}

// A thread is in a call while one lives. One that begins while the process is locked waits.
class CallScope {
 public:
  CallScope();
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;
  ~CallScope();
  // The result of every call after the device was lost.
  CUresult refusal() const { return refusal_; }

 private:
  CUresult refusal_ = CUDA_SUCCESS;
  bool is_counted_ = false;
};

}  // namespace regatta::standin
