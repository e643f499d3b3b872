#include "regatta/platform/controller/decision_thread.h"

#include <optional>
#include <thread>
#include <utility>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::controller {

namespace {

std::shared_ptr<const DecidedState> decided_state(DecisionTask task,
                                                  const sched::SchedulingDecision& decision) {
  auto state = std::make_shared<DecidedState>();
  state->snapshot = std::move(task.view.snapshot);
  state->queue = std::move(task.view.queue);
  state->policy = std::move(task.policy);
  state->decision = decision;
  state->revision = task.revision;
  sched::apply_decision(decision, state->snapshot, state->queue);
  return state;
}

}  // namespace

struct DecisionThread::Impl {
  void run() {
    while (true) {
      std::optional<DecisionTask> task;
      {
        MutexLock lock(mutex);
        changed.wait(lock, [this]() REGATTA_REQUIRES(mutex) { return next || is_ended; });
        if (is_ended) return;
        task = std::exchange(next, std::nullopt);
      }
      const Seconds before = os::monotonic_now();
      auto decision = sched::decide(task->view.snapshot, task->view.queue, task->policy);
      std::shared_ptr<const DecidedState> state;
      if (decision && task->keeps_state) state = decided_state(std::move(*task), *decision);
      task.reset();
      report({.decision = std::move(decision),
              .time = os::monotonic_now() - before,
              .state = std::move(state)});
    }
  }

  std::function<void(DecisionReport)> report;
  Mutex mutex;
  ConditionVariable changed;
  std::optional<DecisionTask> next REGATTA_GUARDED_BY(mutex);
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

void DecisionThread::decide(DecisionTask task) {
  {
    MutexLock lock(impl_->mutex);
    impl_->next.emplace(std::move(task));
  }
  impl_->changed.notify_one();
}

}  // namespace regatta::controller
