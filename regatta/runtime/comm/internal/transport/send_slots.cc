#include "regatta/runtime/comm/internal/transport/send_slots.h"

#include <numeric>
#include <utility>

namespace regatta::comm {

SendSlots::SendSlots(std::uint32_t slots) : posted_(slots), free_(slots) {
  std::iota(free_.begin(), free_.end(), 0U);
}

std::size_t SendSlots::next_queue() const {
  std::size_t best = first_queue_;
  for (std::size_t i = 0; i < in_flight_.size(); ++i) {
    const std::size_t queue = (first_queue_ + i) % in_flight_.size();
    if (in_flight_[queue] < in_flight_[best]) best = queue;
  }
  return best;
}

std::uint32_t SendSlots::acquire(Posted posted) {
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  ++in_flight_[posted.queue];
  first_queue_ = (posted.queue + 1) % in_flight_.size();
  posted_[slot] = std::move(posted);
  return slot;
}

SendSlots::Posted SendSlots::release(std::uint32_t slot) {
  Posted posted = std::exchange(posted_[slot], {});
  --in_flight_[posted.queue];
  free_.push_back(slot);
  return posted;
}

void SendSlots::drop_messages() {
  for (Posted& posted : posted_)
    posted.message.reset();
}

}  // namespace regatta::comm
