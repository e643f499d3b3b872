// controller_service/end_signal.h: SIGTERM and SIGINT as a call, for a program whose threads all
// leave them alone.
#pragma once

#include <functional>

#include "regatta/base/core/mutex.h"

namespace regatta::controller_service {

// One for each program, made before any other thread; lives as long as it does.
class EndSignal {
 public:
  EndSignal();
  EndSignal(const EndSignal&) = delete;
  EndSignal& operator=(const EndSignal&) = delete;

  bool has_come() const REGATTA_EXCLUDES(mutex_);
  // `work` runs once in a thread of its own when a signal comes, at once where one has come. The
  // next call replaces it; an empty one waits for a run that is under way.
  void set_work(std::function<void()> work) REGATTA_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::function<void()> work_ REGATTA_GUARDED_BY(mutex_);
  bool has_come_ REGATTA_GUARDED_BY(mutex_) = false;
};

}  // namespace regatta::controller_service
