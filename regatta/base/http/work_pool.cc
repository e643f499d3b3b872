#include "regatta/base/http/work_pool.h"

#include <utility>

#include "regatta/base/os/process.h"

namespace regatta::http {

WorkPool::WorkPool(EventLoop& loop, WorkPoolOptions options)
    : loop_(loop), options_(std::move(options)) {
  for (int i = 0; i < options_.threads; ++i)
    threads_.push_back(os::signal_masked_thread([this] { work_off(); }));
}

WorkPool::~WorkPool() {
  life_.reset();
  {
    MutexLock lock(mutex_);
    is_ended_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
}

Status WorkPool::run(Work work) {
  {
    MutexLock lock(mutex_);
    if (waiting_.size() >= options_.waiting_max) return Error{Code::kExhausted, options_.refusal};
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
  return {};
}

void WorkPool::work_off() {
  while (true) {
    Work work;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock,
                    [this]() REGATTA_REQUIRES(mutex_) { return is_ended_ || !waiting_.empty(); });
      if (is_ended_) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    loop_.post([done = work(), alive = alive_] {
      if (!alive.expired()) done();
    });
  }
}

}  // namespace regatta::http
