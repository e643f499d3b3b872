// sharing/internal/daemon/device_slices.h: the parts of a device's time that two processes get
// while both have work: slices of one length in turn. One that comes later gets none before the
// slice of the other is over. Pure; times in ns.
#pragma once

#include <algorithm>
#include <cstdint>

namespace regatta::sharing {

// The later one's part of `both_ns`, at whose end the earlier one ended its work: whole slices.
inline std::uint64_t slices_beside_last_work(std::uint64_t both_ns, std::uint64_t slice_ns) {
  return std::min(both_ns, (both_ns + slice_ns) / (2 * slice_ns) * slice_ns);
}

// The later one's part of `both_ns`, at whose end it ended its work itself, in a slice of its own.
// The earlier one had been alone for `alone_ns` of its first slice, or longer.
inline std::uint64_t slices_beside_longer_work(std::uint64_t both_ns, std::uint64_t alone_ns,
                                               std::uint64_t slice_ns) {
  const std::uint64_t first = alone_ns < slice_ns ? slice_ns - alone_ns : slice_ns / 2;
  const std::uint64_t left = both_ns - std::min(both_ns, first);
  const std::uint64_t whole = left / (2 * slice_ns) * slice_ns;  // as many as the other got
  return std::min(both_ns, whole + std::min(left - 2 * whole, slice_ns));
}

}  // namespace regatta::sharing
