// comm/internal/engine/operation_inbox.h: hands operations from the threads that call to the
// progress thread, and the error of a failed world back. All functions may be called from any
// thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/operation.h"

namespace regatta::comm {

class OperationInbox {
 public:
  // True when the progress thread sleeps and must be woken. After fail() the operations end at
  // once.
  bool submit(std::vector<std::unique_ptr<Operation>> operations);
  // The operations that were submitted since the last call.
  std::vector<std::unique_ptr<Operation>> consume();
  // The progress thread is about to sleep; false when operations wait for it.
  bool begin_sleep();
  void end_sleep();
  // Ends the operations that were not consumed, and all later ones, with `error`.
  void fail(const Error& error, Seconds now);
  // No operation follows: the world ends.
  void close() { is_closed_.store(true); }
  bool is_closed() const { return is_closed_.load(); }

 private:
  std::atomic<bool> is_closed_ = false;
  Mutex mutex_;
  std::vector<std::unique_ptr<Operation>> submitted_ REGATTA_GUARDED_BY(mutex_);
  std::optional<Error> error_ REGATTA_GUARDED_BY(mutex_);
  bool is_sleeping_ REGATTA_GUARDED_BY(mutex_) = false;
};

}  // namespace regatta::comm
