// sharing/internal/hook/nvml.h: what NVML says of this process.
#pragma once

#include <cstdint>
#include <optional>

namespace regatta::sharing::hook {

// All that this process has of a device, contexts and modules included; none when NVML is not there
// or does not know the process.
std::optional<std::uint64_t> process_bytes(int device);

}  // namespace regatta::sharing::hook
