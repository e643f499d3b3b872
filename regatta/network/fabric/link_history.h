// fabric/link_history.h: how many bytes crossed each link when, in a bounded number of equal bins
// of time: as time goes on they become twice as long, two in one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "regatta/network/fabric/internal/time_bins.h"

namespace regatta::fabric {

class LinkHistory {
 public:
  // `bins` >= 2, even; the first ones are `width` > 0 seconds long.
  LinkHistory(std::size_t links, std::size_t bins, double width);

  // `rate` bytes per second crossed the link from `begin` to `end`, in seconds, 0 <= begin <= end.
  void add(std::uint32_t link, double rate, double begin, double end);

  // What crossed `from` crossed `to` as well.
  void add_all(std::uint32_t from, std::uint32_t to);

  double width() const { return bins_.width(); }  // seconds
  std::size_t used() const {
    return bins_.used();
  }  // bins, up to the last one that something is in
  double bytes(std::uint32_t link, std::size_t bin) const { return bins_.at(link, bin); }

 private:
  TimeBins bins_;
};

}  // namespace regatta::fabric
