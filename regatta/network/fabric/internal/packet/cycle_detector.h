// fabric/internal/packet/cycle_detector.h: detects steps of a collective that repeat earlier ones:
// the state is equal except for the numbers of the flows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/network/fabric/internal/packet/flow_progress.h"
#include "regatta/network/fabric/internal/packet/link_queues.h"
#include "regatta/network/fabric/internal/packet/recurrence_detector.h"

namespace regatta::fabric::packet {

// A snapshot at which a certain pair began to send a flow.
struct CycleSnapshot {
  StateFingerprint fingerprint;
  std::uint32_t flow = 0;
  Picoseconds now = 0;  // by the clock of the packets
  FlowProgress::Snapshot mark;
  std::vector<LinkQueues::Counts> counts;
  std::uint64_t crossings = 0;
  std::uint64_t packets = 0;
  double bound = 0;
};

class CycleDetector {
 public:
  // Whether to check the state now that a flow of `pair` has started: at each flow of the pair that
  // started first, unless too many checks have failed.
  bool should_check(std::uint32_t pair) {
    if (!pair_) pair_ = pair;
    return *pair_ == pair && in_vain_ < kMost;
  }
  // The last kept snapshot with this fingerprint; null: none.
  const CycleSnapshot* find(const StateFingerprint& fingerprint) const {
    for (std::size_t i = snapshots_.size(); i-- > 0;)
      if (snapshots_[i].fingerprint == fingerprint) return &snapshots_[i];
    return nullptr;
  }
  bool is_full() const { return snapshots_.size() == kKept; }
  void keep(CycleSnapshot snapshot) {
    ++in_vain_;
    snapshots_.push_back(std::move(snapshot));
  }
  void forget() { snapshots_.clear(); }
  void set_found() { in_vain_ = 0; }

 private:
  static constexpr std::size_t kKept = 64;
  static constexpr std::size_t kMost = 512;
  std::optional<std::uint32_t> pair_;
  std::vector<CycleSnapshot> snapshots_;
  std::size_t in_vain_ = 0;
};

}  // namespace regatta::fabric::packet
