// http/work_pool.h: threads beside an event loop for work that would hold the loop up, with a bound
// of what waits.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/http/event_loop.h"

namespace regatta::http {

struct WorkPoolOptions {
  int threads = 1;
  std::size_t waiting_max = 32;
  std::string refusal = "too much work waits; try again later";  // where more comes
};

// Belongs to the loop's thread, and the loop outlives it.
class WorkPool {
 public:
  // Runs in one of the threads; what it returns runs in the loop's, but not after the pool's end.
  using Work = std::function<std::function<void()>()>;

  WorkPool(EventLoop& loop, WorkPoolOptions options);
  ~WorkPool();  // waits for what is under way, and leaves out what waits
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  // kExhausted with the refusal: too much waits, and `work` is left out.
  Status run(Work work);

 private:
  void work_off();

  EventLoop& loop_;
  const WorkPoolOptions options_;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
  const std::weak_ptr<int> alive_ = life_;  // for the threads: `life_` belongs to the loop's
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<Work> waiting_ REGATTA_GUARDED_BY(mutex_);
  bool is_ended_ REGATTA_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace regatta::http
