// rdma/credit.h: how many packets an end may send before the other end has consumed some: each
// consumes a posted receive there, and fails without one. Every packet returns credit to the other
// end; without traffic in that direction, a separate packet carries it. The last credit is reserved
// for that packet, otherwise two ends without credit could never report free receives to each
// other.
#pragma once

#include <cstdint>
#include <utility>

namespace regatta::rdma {

class Credit {
 public:
  // `slots`: receives posted at each end; at least 4.
  explicit Credit(std::uint32_t slots) : slots_(slots), left_(slots) {}

  // For a packet with content.
  bool may_send() const { return left_ > 1; }
  // No other packet goes to the other end, and it should learn that it may send again.
  bool must_return() const { return left_ > 0 && owed_ >= slots_ / 4; }
  // Counts a packet that can carry credit as sent; returns how much credit it carries.
  std::uint32_t send() {
    --left_;
    return std::exchange(owed_, 0);
  }
  // Counts a packet that cannot carry credit as sent.
  void send_bare() { --left_; }
  // Counts a received packet whose receive is posted again, with its `returned` credit. False: the
  // other end broke the rule, it returned more than it got.
  bool receive(std::uint32_t returned) {
    repost();
    return take_back(returned);
  }
  // The two halves of receive(), for a packet that stays in its slot for a while.
  bool take_back(std::uint32_t returned) {
    if (returned > slots_ - left_) return false;
    left_ += returned;
    return true;
  }
  void repost() { ++owed_; }

  std::uint32_t left() const { return left_; }

 private:
  std::uint32_t slots_;
  std::uint32_t left_;
  std::uint32_t owed_ = 0;
};

}  // namespace regatta::rdma
