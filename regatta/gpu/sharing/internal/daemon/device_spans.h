// sharing/internal/daemon/device_spans.h: the spans of a device's time that tenants were charged
// for, so that no time is charged twice. Pure; time is an argument.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace regatta::sharing {

class DeviceSpans {
 public:
  // Charges [begin_ns, end_ns); how much of it no other of the last 16 spans has covered.
  std::uint64_t charge(std::uint64_t begin_ns, std::uint64_t end_ns) {
    const std::uint64_t charged = uncharged(begin_ns, end_ns);
    if (end_ns > begin_ns) spans_[next_++ % spans_.size()] = {begin_ns, end_ns};
    return charged;
  }

  std::uint64_t uncharged(std::uint64_t begin_ns, std::uint64_t end_ns) const {
    if (end_ns <= begin_ns) return 0;
    std::uint64_t covered = 0;
    for (const Span& span : spans_) {
      const std::uint64_t from = std::max(span.begin_ns, begin_ns);
      const std::uint64_t to = std::min(span.end_ns, end_ns);
      if (to > from) covered += to - from;
    }
    return end_ns - begin_ns - std::min(covered, end_ns - begin_ns);
  }

 private:
  struct Span {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
  };
  std::array<Span, 16> spans_{};
  std::size_t next_ = 0;
};

}  // namespace regatta::sharing
