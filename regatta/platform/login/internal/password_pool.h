// login/internal/password_pool.h: what takes long, in threads beside the loop: hashes of passwords.
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

namespace regatta::login {

// Belongs to the loop's thread, where `done` of its calls runs; not after its destruction.
class PasswordPool {
 public:
  PasswordPool(http::EventLoop& loop, int threads);
  ~PasswordPool();  // waits for what is under way
  PasswordPool(const PasswordPool&) = delete;
  PasswordPool& operator=(const PasswordPool&) = delete;

  // kExhausted when too many wait already; then `done` is not called.
  Status hash(std::string password, std::function<void(Result<std::string>)> done);
  // An empty `hash`, as of a user that is not there, takes as long as another and is never right.
  Status verify(std::string hash, std::string password, std::function<void(bool)> done);

  // Runs `work` in one of the threads, and what it returns in the loop's. kExhausted: see hash().
  Status run(std::function<std::function<void()>()> work);

 private:
  void work_off();

  http::EventLoop& loop_;
  std::shared_ptr<int> life_ = std::make_shared<int>(0);
  const std::weak_ptr<int> alive_ = life_;  // for the threads: `life_` belongs to the loop's
  Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::function<std::function<void()>()>> waiting_ REGATTA_GUARDED_BY(mutex_);
  bool is_ended_ REGATTA_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace regatta::login
