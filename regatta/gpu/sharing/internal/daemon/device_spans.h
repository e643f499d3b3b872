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
  // Charges [begin_ns, end_ns); how much of it none of the last 16 charges has covered.
  std::uint64_t charge(std::uint64_t begin_ns, std::uint64_t end_ns) {
    const std::uint64_t charged = uncharged(begin_ns, end_ns);
    if (end_ns > begin_ns) spans_[next_++ % spans_.size()] = {begin_ns, end_ns};
    return charged;
  }

  std::uint64_t uncharged(std::uint64_t begin_ns, std::uint64_t end_ns) const {
    std::array<Span, kSpans> sorted = spans_;
    std::ranges::sort(sorted, {}, &Span::begin_ns);
    std::uint64_t left = 0;
    std::uint64_t from = begin_ns;
    for (const Span& span : sorted) {
      if (span.begin_ns > from) left += std::min(span.begin_ns, end_ns) - std::min(from, end_ns);
      from = std::max(from, span.end_ns);
    }
    return left + (from < end_ns ? end_ns - from : 0);
  }

 private:
  static constexpr std::size_t kSpans = 16;
  struct Span {
    std::uint64_t begin_ns = 0;
    std::uint64_t end_ns = 0;
  };
  std::array<Span, kSpans> spans_{};
  std::size_t next_ = 0;
};

}  // namespace regatta::sharing
