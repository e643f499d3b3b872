#include "regatta/platform/controller/decision_thread.h"

#include <optional>
#include <thread>
#include <utility>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::controller {

struct DecisionThread::Impl {
  struct Task {
    control::SchedulingView view;
    sched::SchedulingPolicy policy;
  };

  void run() {
    while (true) {
      std::optional<Task> task;
      {
        MutexLock lock(mutex);
        changed.wait(lock, [this]() REGATTA_REQUIRES(mutex) { return next || is_ended; });
        if (is_ended) return;
        task = std::exchange(next, std::nullopt);
      }
      const Seconds before = os::monotonic_now();
      auto decision = sched::decide(task->view.snapshot, task->view.queue, task->policy);
      task.reset();
      report({.decision = std::move(decision), .time = os::monotonic_now() - before});
    }
  }

  std::function<void(DecisionReport)> report;
  Mutex mutex;
  ConditionVariable changed;
  std::optional<Task> next REGATTA_GUARDED_BY(mutex);
  bool is_ended REGATTA_GUARDED_BY(mutex) = false;
  std::thread thread;
};

DecisionThread::DecisionThread(std::function<void(DecisionReport)> report)
    : impl_(std::make_unique<Impl>()) {
  impl_->report = std::move(report);
  impl_->thread = os::signal_masked_thread([impl = impl_.get()] { impl->run(); });
}

DecisionThread::~DecisionThread() {
  {
    MutexLock lock(impl_->mutex);
    impl_->is_ended = true;
  }
  impl_->changed.notify_one();
  impl_->thread.join();
}

void DecisionThread::decide(control::SchedulingView view, const sched::SchedulingPolicy& policy) {
  {
    MutexLock lock(impl_->mutex);
    impl_->next.emplace(Impl::Task{std::move(view), policy});
  }
  impl_->changed.notify_one();
}

}  // namespace regatta::controller
