// sharing/internal/hook/ptx_variables.h: the variables that a PTX text places in device memory,
// summed up before the driver compiles it.
#pragma once

#include <cstdint>
#include <string_view>

namespace regatta::sharing::hook {

// An upper bound of what the driver takes of the device for variables.
struct VariableBytes {
  std::uint64_t bytes = 0;
  bool is_known = true;  // false: it may be more, as a size is no plain number
};

// In the blocks that it may lie in.
std::uint64_t bytes_of_variable(std::uint64_t bytes);

// The text may be any bytes.
VariableBytes variables_of_ptx(std::string_view text);

}  // namespace regatta::sharing::hook
