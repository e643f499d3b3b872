// sharing/internal/hook/launch_gate.h: what every launch of work passes on its way to the driver:
// the gate of the device (internal/client/launch_gate.h), which holds it back while it is another
// tenant's turn. There is a gate from the first launch on each device, and none where the process
// is of no tenant: then a launch costs a load and a branch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "regatta/gpu/device/abi/cuda_sharing.h"
#include "regatta/gpu/sharing/internal/client/launch_gate.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"

namespace regatta::sharing::hook {

// In memory that a child of fork() finds empty: the driver does not serve it, and what it inherited
// of a gate may be locked for ever.
struct LaunchGates {
  std::atomic<LaunchGate*> only = nullptr;  // where there is one device
  std::array<std::atomic<LaunchGate*>, REGATTA_DEVICES_MAX> of_device{};
};
extern std::atomic<LaunchGates*> gates;

// From now on launches are of this process's tenant. False: no memory for that.
bool open_gates();

// The gate of the device that the calling thread launches on; null: the launch is not held back.
// `refusal` is the launch's result where the tenant may not launch.
LaunchGate* find_gate(LaunchGates& all, CUresult& refusal);

// `launch` launches what has this key (KernelDurations::key_of()) into `stream`.
template <typename Launch>
CUresult pass_gate(std::uint64_t key, CUstream stream, Launch&& launch) {
  // Memory comes after the turn, for a turn is given to who has its memory there.
  const auto call = [&] {
    const ResidencyGuard here;
    here.launches();
    return launch();
  };
  { const ResidencyGuard first; }  // nobody waits for memory in a turn
  LaunchGates* const all = gates.load(std::memory_order_acquire);
  if (all == nullptr) return call();
  LaunchGate* gate = all->only.load(std::memory_order_acquire);
  if (gate == nullptr) [[unlikely]] {
    CUresult refusal = CUDA_SUCCESS;
    gate = find_gate(*all, refusal);
    if (refusal != CUDA_SUCCESS) return refusal;
    if (gate == nullptr) return call();
  }
  const LaunchGate::Pass pass = gate->pass(key, stream);
  const CUresult result = call();
  gate->launched(pass, stream);
  return result;
}

// A graph or a kernel that had this key is gone.
void forget_launches(std::uint64_t key);
// Before the driver destroys a context.
void leave_context(CUcontext context);

}  // namespace regatta::sharing::hook
