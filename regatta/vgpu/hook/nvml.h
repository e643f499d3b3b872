// vgpu/hook/nvml.h: what NVML says of this process.
#pragma once

#include <cstdint>
#include <optional>

namespace regatta::vgpu::hook {

// All that this process has of a device, contexts and modules included; none when NVML is not there
// or does not know the process.
std::optional<std::uint64_t> process_bytes(int device);

}  // namespace regatta::vgpu::hook
