#include "regatta/network/probe/internal/window_counts.h"

#include <algorithm>

namespace regatta::probe {

WindowCounts::Slot* WindowCounts::slot(diag::Window window) {
  if (window < 0) return nullptr;
  Slot& one = slots_[static_cast<std::size_t>(window) % kSlots];
  if (one.window > window) return nullptr;
  if (one.window < window) {
    one.window = window;
    one.worst_gap_ns = 0;
    one.control_sent = one.control_back = one.overflows = 0;
    one.is_reported = false;
    one.sent.assign(sends_, 0);
    one.answered.assign(sends_, 0);
    one.arrived.assign(answers_, 0);
  }
  return &one;
}

std::vector<const WindowCounts::Slot*> WindowCounts::consume_due(std::int64_t round) {
  const diag::Window last = window_of(round) - 1;
  if (last <= reported_until_ && again_.empty()) return {};
  std::ranges::sort(again_);
  again_.erase(std::unique(again_.begin(), again_.end()), again_.end());
  constexpr diag::Window kMost = kSlots / 2;  // after a long sleep
  for (diag::Window window = std::max(reported_until_ + 1, last - kMost); window <= last; ++window)
    again_.push_back(window);
  std::vector<const Slot*> due;
  for (const diag::Window window : again_) {
    Slot* const one = slot(window);
    if (one == nullptr) continue;
    one->is_reported = true;
    due.push_back(one);
  }
  again_.clear();
  reported_until_ = std::max(reported_until_, last);
  return due;
}

std::int64_t WindowCounts::worst_gap_ns(diag::Window window, std::int64_t round) const {
  std::int64_t gap = 0;
  for (const diag::Window newest = window_of(round); window <= newest; ++window) {
    const Slot& later = slots_[static_cast<std::size_t>(window) % kSlots];
    if (later.window == window) gap = std::max(gap, later.worst_gap_ns);
  }
  return gap;
}

}  // namespace regatta::probe
