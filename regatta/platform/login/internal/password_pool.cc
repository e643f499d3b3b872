#include "regatta/platform/login/internal/password_pool.h"

#include <utility>

#include "regatta/base/os/process.h"
#include "regatta/platform/identity/secret.h"

namespace regatta::login {
namespace {

constexpr std::size_t kWaitingMax = 32;
// The hash of no password.
constexpr const char* kNobodysHash =
    "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$"
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

}  // namespace

PasswordPool::PasswordPool(http::EventLoop& loop, int threads) : loop_(loop) {
  for (int i = 0; i < threads; ++i)
    threads_.push_back(os::signal_masked_thread([this] { work_off(); }));
}

PasswordPool::~PasswordPool() {
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

Status PasswordPool::hash(std::string password, std::function<void(Result<std::string>)> done) {
  return run([password = std::move(password), done = std::move(done)] {
    return std::function<void()>([done, made = identity::hash_password(password)] { done(made); });
  });
}

Status PasswordPool::verify(std::string hash, std::string password,
                            std::function<void(bool)> done) {
  return run([hash = std::move(hash), password = std::move(password), done = std::move(done)] {
    const bool is_right =
        identity::verify_password(hash.empty() ? kNobodysHash : hash, password) && !hash.empty();
    return std::function<void()>([done, is_right] { done(is_right); });
  });
}

Status PasswordPool::run(std::function<std::function<void()>()> work) {
  {
    MutexLock lock(mutex_);
    if (waiting_.size() >= kWaitingMax)
      return Error{Code::kExhausted, "too many logins are checked at this moment; try later"};
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
  return {};
}

void PasswordPool::work_off() {
  while (true) {
    std::function<std::function<void()>()> work;
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

}  // namespace regatta::login
