#include "regatta/platform/plan_service/plan_pool.h"

#include <atomic>
#include <deque>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::plan_service {

struct PlanPool::Impl {
  struct Task {
    Work work;
    Done done;
    Seconds deadline;
  };

  Impl(http::EventLoop& event_loop, PlanPoolOptions given) : loop(event_loop), options(given) {}

  std::optional<Task> next() {
    MutexLock lock(mutex);
    changed.wait(lock,
                 [this]() REGATTA_REQUIRES(mutex) { return !tasks.empty() || is_ended.load(); });
    if (is_ended) return std::nullopt;
    std::optional<Task> task = std::move(tasks.front());
    tasks.pop_front();
    return task;
  }

  void run() {
    while (auto task = next()) {
      const std::function<bool()> late = [this, deadline = task->deadline] {
        return is_ended || os::monotonic_now() > deadline;
      };
      auto result = late() ? Result<std::string>(Error{Code::kTimeout,
                                                       "it waited too long; try "
                                                       "again later"})
                           : task->work(late);
      loop.post([alive = alive, done = std::move(task->done), result = std::move(result)] {
        if (!alive.expired()) done(result);
      });
    }
  }

  http::EventLoop& loop;
  PlanPoolOptions options;
  std::shared_ptr<int> life = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = life;  // for the threads: `life` belongs to the loop's
  std::atomic<bool> is_ended{false};
  Mutex mutex;
  ConditionVariable changed;
  std::deque<Task> tasks REGATTA_GUARDED_BY(mutex);
  std::vector<std::thread> threads;
};

PlanPool::PlanPool(http::EventLoop& loop, PlanPoolOptions options)
    : impl_(std::make_unique<Impl>(loop, options)) {
  for (int i = 0; i < options.threads; ++i)
    impl_->threads.push_back(os::signal_masked_thread([impl = impl_.get()] { impl->run(); }));
}

PlanPool::~PlanPool() {
  impl_->life.reset();
  {
    MutexLock lock(impl_->mutex);
    impl_->is_ended = true;
  }
  impl_->changed.notify_all();
  for (std::thread& thread : impl_->threads)
    thread.join();
}

Status PlanPool::run(Work work, Done done) {
  {
    MutexLock lock(impl_->mutex);
    if (impl_->tasks.size() >= static_cast<std::size_t>(impl_->options.waiting_max))
      return Error{Code::kExhausted, "too many plans are searched now; try again later"};
    impl_->tasks.push_back(
        {std::move(work), std::move(done), os::monotonic_now() + impl_->options.deadline});
  }
  impl_->changed.notify_one();
  return {};
}

}  // namespace regatta::plan_service
