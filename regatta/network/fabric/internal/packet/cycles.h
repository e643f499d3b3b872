// fabric/internal/packet/cycles.h: steps of a collective that are like those before them: the same
// state, but for the numbers of the flows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/network/fabric/internal/packet/flows.h"
#include "regatta/network/fabric/internal/packet/lines.h"
#include "regatta/network/fabric/internal/packet/recurrence.h"

namespace regatta::fabric::packet {

// A moment at which a certain pair began to send a flow.
struct Moment {
  Print print;
  std::uint32_t flow = 0;
  Flows::Mark mark;
  std::vector<Lines::Counts> counts;
  std::uint64_t crossings = 0;
  std::uint64_t packets = 0;
  double bound = 0;
};

class Cycles {
 public:
  // Whether the state is to be looked at now that `flow` of this pair has started: at each one of
  // the pair that started first, unless that has been in vain for long.
  bool is_to_look(std::uint32_t pair) {
    if (!pair_) pair_ = pair;
    return *pair_ == pair && in_vain_ < kMost;
  }
  // The last moment with this print, before it is kept.
  const Moment* find(const Print& print) const {
    for (std::size_t i = moments_.size(); i-- > 0;)
      if (moments_[i].print == print) return &moments_[i];
    return nullptr;
  }
  bool is_full() const { return moments_.size() == kKept; }
  void keep(Moment moment) {
    ++in_vain_;
    moments_.push_back(std::move(moment));
  }
  void forget() { moments_.clear(); }
  void set_found() { in_vain_ = 0; }

 private:
  static constexpr std::size_t kKept = 64;
  static constexpr std::size_t kMost = 512;
  std::optional<std::uint32_t> pair_;
  std::vector<Moment> moments_;
  std::size_t in_vain_ = 0;
};

}  // namespace regatta::fabric::packet
