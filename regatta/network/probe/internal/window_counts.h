// probe/internal/window_counts.h: what a server has sent, got answered and received, by window, as
// long as answers may still come, and which windows are to be reported. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/network/diag/observation.h"

namespace regatta::probe {

class WindowCounts {
 public:
  static constexpr std::size_t kSlots = 128;

  struct Slot {
    diag::Window window = -1;
    std::int64_t worst_gap_ns = 0;
    std::uint32_t control_sent = 0;
    std::uint32_t control_back = 0;
    std::uint32_t overflows = 0;
    std::vector<std::uint16_t> sent;      // by place in ServerPart::sends
    std::vector<std::uint16_t> answered;  // the same
    std::vector<std::uint16_t> arrived;   // by place in ServerPart::answers
    bool is_reported = false;
  };

  // `rounds`: in one window, at least 1.
  WindowCounts(std::size_t sends, std::size_t answers, int rounds)
      : sends_(sends), answers_(answers), rounds_(rounds), slots_(kSlots) {}

  diag::Window window_of(std::int64_t round) const { return round / rounds_; }

  // Nothing is reported of this round's window and those before it.
  void begin_after(std::int64_t round) { reported_until_ = window_of(round); }

  // Applies `change` to the slot of the round, unless its window is too old.
  template <typename Change>
  void note(std::int64_t round, Change&& change) {
    Slot* const one = slot(window_of(round));
    if (one == nullptr) return;
    change(*one);
    if (one->is_reported && (again_.empty() || again_.back() != one->window))
      again_.push_back(one->window);
  }

  // The windows that have ended by this round (exclusive), ascending, unless they were reported;
  // and of the reported ones those that have changed since.
  std::vector<const Slot*> consume_due(std::int64_t round);
  // The last window that was due.
  diag::Window reported_until() const { return reported_until_; }

  // The largest gap in this window and the later ones up to that of `round`.
  std::int64_t worst_gap_ns(diag::Window window, std::int64_t round) const;

 private:
  Slot* slot(diag::Window window);

  std::size_t sends_;
  std::size_t answers_;
  int rounds_;
  std::vector<Slot> slots_;
  diag::Window reported_until_ = -1;
  std::vector<diag::Window> again_;  // reported windows that have changed
};

}  // namespace regatta::probe
