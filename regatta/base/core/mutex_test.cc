#include "regatta/base/core/mutex.h"

#include <thread>

#include <gtest/gtest.h>

#include "regatta/base/core/units.h"

namespace regatta {
namespace {

struct Counter {
  Mutex mutex;
  ConditionVariable changed;
  int value REGATTA_GUARDED_BY(mutex) = 0;
};

TEST(Mutex, KeepsConcurrentIncrementsApart) {
  Counter counter;
  const auto add = [&] {
    for (int i = 0; i < 10000; ++i) {
      const MutexLock lock(counter.mutex);
      ++counter.value;
    }
  };
  std::thread other(add);
  add();
  other.join();
  const MutexLock lock(counter.mutex);
  EXPECT_EQ(counter.value, 20000);
}

TEST(MutexLock, LetsOthersInBetweenUnlockAndLock) {
  Mutex mutex;
  const auto is_free = [&mutex] {
    bool locked = false;
    std::thread([&] {
      if (!mutex.try_lock()) return;
      locked = true;
      mutex.unlock();
    }).join();
    return locked;
  };
  MutexLock lock(mutex);
  EXPECT_FALSE(is_free());
  lock.unlock();
  EXPECT_TRUE(is_free());
  lock.lock();
  EXPECT_FALSE(is_free());
}

TEST(ConditionVariable, WakesTheThreadThatWaitsForAChange) {
  Counter counter;
  std::thread other([&] {
    const MutexLock lock(counter.mutex);
    counter.value = 1;
    counter.changed.notify_all();
  });
  {
    MutexLock lock(counter.mutex);
    counter.changed.wait(lock,
                         [&]() REGATTA_REQUIRES(counter.mutex) { return counter.value == 1; });
    EXPECT_EQ(counter.value, 1);
  }
  other.join();
}

TEST(ConditionVariable, ReturnsFalseWhenTheLimitPasses) {
  Counter counter;
  MutexLock lock(counter.mutex);
  EXPECT_FALSE(counter.changed.wait_for(
      lock, Seconds{0.001}, [&]() REGATTA_REQUIRES(counter.mutex) { return counter.value == 1; }));
}

}  // namespace
}  // namespace regatta
