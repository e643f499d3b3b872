// rdma/credit.h: how many packets an end may send to the other before that one has taken some: each
// takes a posted receive there, and one without such fails.
// What the other end gives back travels with every packet; when none goes there, a packet of its
// own carries it. The last credit is kept for that packet, or two ends that used up all could
// never tell each other that they have room again.
#pragma once

#include <cstdint>
#include <utility>

namespace regatta::rdma {

class Credit {
 public:
  // `slots`: receives posted at each end; at least 4.
  explicit Credit(std::uint32_t slots) : slots_(slots), left_(slots) {}

  // For a packet that has something to say.
  bool may_send() const { return left_ > 1; }
  // Nothing else goes in the other direction, and the other end should hear that it may send again.
  bool must_return() const { return left_ > 0 && owed_ >= slots_ / 4; }
  // A packet leaves that can carry credit; returns how much it gives back.
  std::uint32_t send() {
    --left_;
    return std::exchange(owed_, 0);
  }
  // A packet leaves that can carry none.
  void send_bare() { --left_; }
  // A packet came, its receive is posted again, and it gave back `returned`. False: the other end
  // broke the rule, it gave back more than it got.
  bool receive(std::uint32_t returned) {
    repost();
    return take_back(returned);
  }
  // The two halves of it, where what came stays in its slot for a while.
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
