// fabric/internal/packet/fifo_queue.h: a queue in one piece of memory, which grows and never
// shrinks.
#pragma once

#include <cstddef>
#include <vector>

namespace regatta::fabric::packet {

template <typename T>
class FifoQueue {
 public:
  bool empty() const { return first_ == last_; }
  std::size_t size() const { return last_ - first_; }
  const T& front() const { return places_[first_ & mask_]; }
  T& at(std::size_t i) { return places_[(first_ + i) & mask_]; }
  const T& at(std::size_t i) const { return places_[(first_ + i) & mask_]; }
  void push(const T& value) {
    if (size() == places_.size()) grow();
    places_[last_++ & mask_] = value;
  }
  T pop() { return places_[first_++ & mask_]; }
  void clear() { first_ = last_; }

 private:
  void grow() {
    std::vector<T> places(places_.empty() ? 4 : 2 * places_.size());
    const std::size_t count = size();
    for (std::size_t i = 0; i < count; ++i)
      places[i] = at(i);
    places_ = std::move(places);
    mask_ = places_.size() - 1;
    first_ = 0;
    last_ = count;
  }

  std::vector<T> places_;  // a power of two of them, or none
  std::size_t mask_ = 0;
  std::size_t first_ = 0;  // counted on without end
  std::size_t last_ = 0;
};

}  // namespace regatta::fabric::packet
