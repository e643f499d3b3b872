#include "regatta/app/cli/internal/hang_watch.h"

#include <algorithm>

namespace regatta::cli {

void HangWatch::set_limit(Seconds between) {
  limits_ = {.first = between, .between = between};
  silence_ = {};
}

bool HangWatch::hangs(std::uint64_t beats, Seconds now) {
  silence_ = beats == beats_ ? silence_ + std::min(now - looked_, kLongestPause) : Seconds{};
  looked_ = now;
  beats_ = beats;
  return silence_ > (beats == 0 ? limits_.first : limits_.between);
}

}  // namespace regatta::cli
