// vgpu/hook/gate.h: what every launch of work passes on its way to the driver. Today it counts.
#pragma once

#include <atomic>
#include <cstdint>

#include "regatta/gpu/abi/cuda_sharing.h"

namespace regatta::vgpu::hook {

struct Gate {
  std::atomic<std::uint64_t> passed = 0;  // launches so far
};
extern Gate gate;

// A launch into `stream`, which may be under capture: then nothing may wait here.
inline void pass_gate(CUstream) {
  gate.passed.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace regatta::vgpu::hook
