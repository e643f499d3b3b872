#include "regatta/fabric/link_history.h"

#include <algorithm>

#include "regatta/core/check.h"

namespace regatta::fabric {

LinkHistory::LinkHistory(std::size_t links, std::size_t bins, double width)
    : links_(links), bins_(bins), width_(width), bytes_(links * bins, 0) {
  REGATTA_CHECK(bins >= 2 && bins % 2 == 0 && width > 0);
}

void LinkHistory::add(std::uint32_t link, double rate, double begin, double end) {
  if (rate <= 0 || end <= begin) return;
  while (end > width_ * static_cast<double>(bins_))
    double_width();
  const auto first = static_cast<std::size_t>(begin / width_);
  const auto last = std::min(static_cast<std::size_t>(end / width_), bins_ - 1);
  for (std::size_t bin = first; bin <= last; ++bin) {
    const double from = std::max(begin, width_ * static_cast<double>(bin));
    const double to = std::min(end, width_ * static_cast<double>(bin + 1));
    if (to > from) bytes_[link * bins_ + bin] += static_cast<float>(rate * (to - from));
  }
  used_ = std::max(used_, last + 1);
}

void LinkHistory::add_all(std::uint32_t from, std::uint32_t to) {
  for (std::size_t bin = 0; bin < used_; ++bin)
    bytes_[to * bins_ + bin] += bytes_[from * bins_ + bin];
}

void LinkHistory::double_width() {
  for (std::size_t link = 0; link < links_; ++link) {
    float* const of = bytes_.data() + link * bins_;
    for (std::size_t bin = 0; bin < bins_ / 2; ++bin)
      of[bin] = of[2 * bin] + of[2 * bin + 1];
    std::fill(of + bins_ / 2, of + bins_, 0.0F);
  }
  width_ *= 2;
  used_ = (used_ + 1) / 2;
}

}  // namespace regatta::fabric
