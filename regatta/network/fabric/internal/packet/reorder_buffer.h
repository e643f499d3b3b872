// fabric/internal/packet/reorder_buffer.h: the packets of a connection that a receiver holds back
// until all earlier ones have arrived.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace regatta::fabric::packet {

class ReorderBuffer {
 public:
  // Packet `sequence` arrives, each once. Returns whether one sent later arrived before it.
  bool take(std::uint32_t sequence) {
    if (sequence == next_ && ahead_ == 0) {  // as nearly always
      ++next_;
      return false;
    }
    const bool is_late = sequence < next_ + highest_;
    if (sequence - next_ >= 64 * bits_.size()) grow(sequence - next_);
    highest_ = std::max(highest_, sequence - next_ + 1);
    word(sequence) |= bit(sequence);
    ++ahead_;
    for (; (word(next_) & bit(next_)) != 0; ++next_, --ahead_) {
      word(next_) &= ~bit(next_);
      --highest_;
    }
    return is_late;
  }

  // Packets that have arrived before an earlier one.
  std::uint32_t held() const { return ahead_; }

 private:
  static std::uint64_t bit(std::uint32_t sequence) { return 1ULL << (sequence % 64); }
  std::uint64_t& word(std::uint32_t sequence) { return bits_[sequence / 64 % bits_.size()]; }

  void grow(std::uint32_t most) {
    std::vector<std::uint64_t> old(std::max<std::size_t>(bits_.size() * 2, most / 64 * 2 + 2));
    old.swap(bits_);
    for (std::uint32_t i = 0; i < 64 * old.size(); ++i) {
      const std::uint32_t sequence = next_ + i;
      if ((old[sequence / 64 % old.size()] & bit(sequence)) != 0) word(sequence) |= bit(sequence);
    }
  }

  std::uint32_t next_ = 0;           // all before it have come
  std::uint32_t ahead_ = 0;          // after it, how many
  std::uint32_t highest_ = 0;        // how far after it, plus one; 0: none
  std::vector<std::uint64_t> bits_;  // which: a ring
};

}  // namespace regatta::fabric::packet
