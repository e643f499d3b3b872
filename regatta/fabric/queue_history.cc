#include "regatta/fabric/queue_history.h"

#include <algorithm>

#include "regatta/core/check.h"

namespace regatta::fabric {

QueueHistory::QueueHistory(std::size_t links, std::size_t bins, double width)
    : links_(links), bins_(bins), width_(width), bytes_(links * bins, 0) {
  REGATTA_CHECK(bins >= 2 && bins % 2 == 0 && width > 0);
}

void QueueHistory::add(std::uint32_t link, double bytes, double begin, double end) {
  if (bytes <= 0 || end <= begin) return;
  while (end > width_ * static_cast<double>(bins_))
    double_width();
  const auto first = static_cast<std::size_t>(begin / width_);
  std::size_t last = std::min(static_cast<std::size_t>(end / width_), bins_ - 1);
  if (last > first && width_ * static_cast<double>(last) >= end) --last;  // it ends as that begins
  for (std::size_t bin = first; bin <= last; ++bin) {
    float& most = bytes_[link * bins_ + bin];
    most = std::max(most, static_cast<float>(bytes));
  }
  used_ = std::max(used_, last + 1);
}

void QueueHistory::double_width() {
  for (std::size_t link = 0; link < links_; ++link) {
    float* const of = bytes_.data() + link * bins_;
    for (std::size_t bin = 0; bin < bins_ / 2; ++bin)
      of[bin] = std::max(of[2 * bin], of[2 * bin + 1]);
    std::fill(of + bins_ / 2, of + bins_, 0.0F);
  }
  width_ *= 2;
  used_ = (used_ + 1) / 2;
}

}  // namespace regatta::fabric
