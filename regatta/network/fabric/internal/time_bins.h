// fabric/internal/time_bins.h: a number for each link and each of a bounded number of equal bins of
// time: when they are used up, pairs of bins merge into bins of twice the width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace regatta::fabric {

class TimeBins {
 public:
  using Merge = float (*)(float, float);  // merges two bins

  // `bins` >= 2, even; the first ones are `width` > 0 seconds long.
  TimeBins(std::size_t links, std::size_t bins, double width, Merge merge);

  // Widens the bins until `end`, in seconds, is in one.
  void reach(double end);
  // The bin that a time before that is in.
  std::size_t bin_of(double time) const;

  double width() const { return width_; }     // seconds
  std::size_t used() const { return used_; }  // bins, up to the last one that is not empty
  void use(std::size_t last);                 // this one is not empty
  float& at(std::uint32_t link, std::size_t bin) { return values_[link * bins_ + bin]; }
  float at(std::uint32_t link, std::size_t bin) const { return values_[link * bins_ + bin]; }
  void multiply(float factor);

 private:
  void double_width();

  std::size_t links_;
  std::size_t bins_;
  double width_;
  Merge merge_;
  std::size_t used_ = 0;
  std::vector<float> values_;  // per link and bin
};

}  // namespace regatta::fabric
