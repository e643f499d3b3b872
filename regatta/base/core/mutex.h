// core/mutex.h: a mutex, its lock and a condition variable with clang's capability attributes, so
// that -Wthread-safety checks which mutex guards which member. g++ ignores the attributes. Source:
// Hutchins, Ballman and Sutherland, "C/C++ Thread Safety Analysis", SCAM 2014.
//
//   Mutex mutex_;
//   std::vector<Item> items_ REGATTA_GUARDED_BY(mutex_);
//   void drop_oldest() REGATTA_REQUIRES(mutex_);      // the caller holds mutex_
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "regatta/base/core/units.h"

#if defined(__clang__)
#define REGATTA_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define REGATTA_THREAD_ATTRIBUTE(x)
#endif
#define REGATTA_GUARDED_BY(mutex) REGATTA_THREAD_ATTRIBUTE(guarded_by(mutex))
#define REGATTA_POINTEE_GUARDED_BY(mutex) REGATTA_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
#define REGATTA_REQUIRES(...) REGATTA_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define REGATTA_EXCLUDES(...) REGATTA_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define REGATTA_ACQUIRE(...) REGATTA_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define REGATTA_RELEASE(...) REGATTA_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define REGATTA_TRY_ACQUIRE(...) REGATTA_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define REGATTA_NO_THREAD_SAFETY_ANALYSIS REGATTA_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace regatta {

class REGATTA_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() REGATTA_ACQUIRE() { mutex_.lock(); }
  void unlock() REGATTA_RELEASE() { mutex_.unlock(); }
  bool try_lock() REGATTA_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex from its construction to its end, but for the time between unlock() and lock().
class REGATTA_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) REGATTA_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() REGATTA_RELEASE() = default;

  void unlock() REGATTA_RELEASE() { lock_.unlock(); }
  void lock() REGATTA_ACQUIRE() { lock_.lock(); }

 private:
  friend class ConditionVariable;
  std::unique_lock<std::mutex> lock_;
};

// Each wait releases the mutex while it waits and holds it again when it returns. A predicate that
// reads guarded members is a lambda marked REGATTA_REQUIRES(mutex).
class ConditionVariable {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  // May return without a notification.
  void wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  template <typename Predicate>
  void wait(MutexLock& lock, Predicate predicate) {
    condition_.wait(lock.lock_, std::move(predicate));
  }
  // Returns false when `limit` has passed without a notification.
  bool wait_for(MutexLock& lock, Seconds limit) {
    return condition_.wait_for(lock.lock_, duration(limit)) == std::cv_status::no_timeout;
  }
  // Returns the predicate's value: false only when `limit` has passed.
  template <typename Predicate>
  bool wait_for(MutexLock& lock, Seconds limit, Predicate predicate) {
    return condition_.wait_for(lock.lock_, duration(limit), std::move(predicate));
  }

 private:
  static std::chrono::duration<double> duration(Seconds limit) {
    return std::chrono::duration<double>(limit.value);
  }

  std::condition_variable condition_;
};

}  // namespace regatta
