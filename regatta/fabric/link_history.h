// fabric/link_history.h: how many bytes crossed each link when, in a bounded number of equal bins
// of time: as time goes on they become twice as long, two in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace regatta::fabric {

class LinkHistory {
 public:
  // `bins` >= 2, even; the first ones are `width` > 0 seconds long.
  LinkHistory(std::size_t links, std::size_t bins, double width);

  // `rate` bytes per second crossed the link from `begin` to `end`, in seconds, 0 <= begin <= end.
  void add(std::uint32_t link, double rate, double begin, double end);

  // What crossed `from` crossed `to` as well.
  void add_all(std::uint32_t from, std::uint32_t to);

  double width() const { return width_; }     // seconds
  std::size_t used() const { return used_; }  // bins, up to the last one that something is in
  double bytes(std::uint32_t link, std::size_t bin) const { return bytes_[link * bins_ + bin]; }

 private:
  void double_width();

  std::size_t links_;
  std::size_t bins_;
  double width_;
  std::size_t used_ = 0;
  std::vector<float> bytes_;  // per link and bin
};

}  // namespace regatta::fabric
