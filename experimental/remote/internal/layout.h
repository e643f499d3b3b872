// experimental/remote/internal/layout.h: offsets and sizes of a kernel's parameters. The client
// requests them once for each function, so a launch carries the values without a round trip.
#pragma once

#include <cstddef>
#include <vector>

#include "experimental/remote/internal/bytes.h"
#include "experimental/remote/internal/frames.h"

namespace regatta::remote {

class HostProcess;
using ParameterLayout = std::vector<KernelParameter>;

inline constexpr std::size_t kMostParameters = 4096;
inline constexpr std::size_t kMostParameterBytes = 32764;  // the driver's own limit

// 0 where there are none.
std::size_t layout_bytes(const ParameterLayout& layout);

// The client's layout of `function`; asks the server when it is unknown. The last one that this
// thread found is found_layout().
CUresult find_layout(CUfunction function);
const ParameterLayout& found_layout();
void forget_layouts();  // functions may be gone, and their handles may be reused

// The server's.
CUresult host_layout(HostProcess& host, CUfunction function, ParameterLayout& layout);

// Whether the header states no more than the received bytes; the last byte is a zero added by the
// server.
bool holds_image(const std::vector<std::byte>& bytes);

}  // namespace regatta::remote
