#include "regatta/runtime/comm/internal/engine/operation_inbox.h"

#include <utility>

#include "regatta/base/os/clock.h"

namespace regatta::comm {

bool OperationInbox::submit(std::vector<std::unique_ptr<Operation>> operations) {
  const MutexLock lock(mutex_);
  for (auto& operation : operations)
    if (error_)
      operation->handle->finish(error_, os::monotonic_now());
    else
      submitted_.push_back(std::move(operation));
  return !error_ && std::exchange(is_sleeping_, false);
}

std::vector<std::unique_ptr<Operation>> OperationInbox::consume() {
  const MutexLock lock(mutex_);
  return std::exchange(submitted_, {});
}

bool OperationInbox::begin_sleep() {
  const MutexLock lock(mutex_);
  is_sleeping_ = submitted_.empty();
  return is_sleeping_;
}

void OperationInbox::end_sleep() {
  const MutexLock lock(mutex_);
  is_sleeping_ = false;
}

void OperationInbox::fail(const Error& error, Seconds now) {
  std::vector<std::unique_ptr<Operation>> left;
  {
    const MutexLock lock(mutex_);
    error_ = error;
    left.swap(submitted_);
  }
  for (const auto& operation : left)
    operation->handle->finish(error, now);
}

}  // namespace regatta::comm
