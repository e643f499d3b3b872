// sharing/internal/client/work_page.h: what this process does on a device, as the daemon reads it
// in the client's page (regatta_work). The gate's mutex guards it.
#pragma once

#include <cstdint>

#include "regatta/gpu/sharing/internal/ledger/page_layout.h"

namespace regatta::sharing {

class WorkPage {
 public:
  WorkPage(regatta_work& page, regatta_work_marks& marks) : page_(page), marks_(marks) {}

  // The daemon reads it when it is notified, or when it closes a turn.
  void set_activity(unsigned turn, regatta_activity activity) {
    activity_ = activity;
    __atomic_store_n(&page_.word, regatta_work_word(turn, activity), __ATOMIC_SEQ_CST);
  }
  regatta_activity activity() const { return activity_; }
  bool shows(unsigned turn, regatta_activity activity) const {
    return page_.word == regatta_work_word(turn, activity);
  }
  void set_used(std::uint64_t used_ns) {
    __atomic_store_n(&page_.used_ns, used_ns, __ATOMIC_RELAXED);
  }
  // 0: nothing is in flight.
  void set_busy_since(std::uint64_t now_ns) {
    __atomic_store_n(&marks_.busy_since_ns, now_ns, __ATOMIC_RELAXED);
  }
  // Before set_activity(), which the daemon reads it with.
  void set_ended(std::uint64_t ended_ns) {
    __atomic_store_n(&marks_.ended_ns, ended_ns, __ATOMIC_RELAXED);
  }
  void set_entered(std::uint64_t now_ns) {
    __atomic_store_n(&page_.entered_ns, now_ns, __ATOMIC_RELAXED);
  }
  // Nothing more is launched in this turn, so the daemon may let the next tenant prepare.
  void set_end(unsigned turn, std::uint64_t ends_ns) {
    __atomic_store_n(&page_.ends_ns, ends_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&page_.ends_number, turn, __ATOMIC_RELEASE);
  }

 private:
  regatta_work& page_;
  regatta_work_marks& marks_;
  regatta_activity activity_ = REGATTA_IDLE;
};

}  // namespace regatta::sharing
