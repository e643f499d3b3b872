#include "regatta/network/fabric/internal/time_bins.h"

#include <algorithm>

#include "regatta/base/core/result.h"

namespace regatta::fabric {

TimeBins::TimeBins(std::size_t links, std::size_t bins, double width, Merge merge)
    : links_(links), bins_(bins), width_(width), merge_(merge), values_(links * bins, 0) {
  REGATTA_CHECK(bins >= 2 && bins % 2 == 0 && width > 0);
}

void TimeBins::reach(double end) {
  while (end > width_ * static_cast<double>(bins_))
    double_width();
}

std::size_t TimeBins::bin_of(double time) const {
  return std::min(static_cast<std::size_t>(time / width_), bins_ - 1);
}

void TimeBins::use(std::size_t last) {
  used_ = std::max(used_, last + 1);
}

void TimeBins::multiply(float factor) {
  for (float& value : values_)
    value *= factor;
}

void TimeBins::double_width() {
  for (std::size_t link = 0; link < links_; ++link) {
    float* const of = values_.data() + link * bins_;
    for (std::size_t bin = 0; bin < bins_ / 2; ++bin)
      of[bin] = merge_(of[2 * bin], of[2 * bin + 1]);
    std::fill(of + bins_ / 2, of + bins_, 0.0F);
  }
  width_ *= 2;
  used_ = (used_ + 1) / 2;
}

}  // namespace regatta::fabric
