// tests/standin/fault.h: calls of the driver that fail because a test wants them to.
#pragma once

#include <string_view>

#include "regatta/gpu/device/abi/cuda_sharing.h"

namespace regatta::standin {

// From REGATTA_STANDIN_FAULTS when the library is loaded, for the Nth call of an entry: NAME:N=CODE
// fails, NAME:N~MICROSECONDS begins so much later, NAME:N! kills the devices first; N+ instead of
// N: all from the Nth on. `,` between them. A name is an exported symbol's. @PATH: from this file.
bool has_faults();
// Counts a call; what it has to fail with, or CUDA_SUCCESS.
CUresult next_fault(std::string_view entry);

}  // namespace regatta::standin
