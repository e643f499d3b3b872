#include "regatta/network/fabric/internal/packet/outage_schedule.h"

#include <algorithm>

namespace regatta::fabric::packet {

const Outage& OutageSchedule::apply(Picoseconds now) {
  const Outage& outage = outages_[past_++];
  last_at_ = now;
  for (const LinkId link : outage.back)
    set(link, LinkState::kUp);
  for (const LinkId link : outage.dead)
    set(link, comes_back(link) ? LinkState::kDown : LinkState::kRemoved);
  return outage;
}

bool OutageSchedule::comes_back(LinkId link) const {
  return std::any_of(
      outages_.begin() + static_cast<std::ptrdiff_t>(past_), outages_.end(),
      [&](const Outage& later) { return std::ranges::count(later.back, link) != 0; });
}

}  // namespace regatta::fabric::packet
