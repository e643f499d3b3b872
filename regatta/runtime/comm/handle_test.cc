#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/internal/communicator_impl.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

// Waits for handles on a thread of its own and drops them there.
class Waiter {
 public:
  Waiter() : thread_([this] { serve(); }) {}
  ~Waiter() {
    give({});
    thread_.join();
  }

  void give(std::optional<Handle> handle) {
    const std::lock_guard lock(mutex_);
    handles_.push_back(std::move(handle));
    changed_.notify_one();
  }

 private:
  void serve() {
    for (;;) {
      std::optional<Handle> handle;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return !handles_.empty(); });
        handle = std::move(handles_.front());
        handles_.pop_front();
      }
      if (!handle) return;
      expect_ok(handle->wait());
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::optional<Handle>> handles_;
  std::thread thread_;
};

class HandleTest : public testing::TestWithParam<TestLayout> {};

TEST_P(HandleTest, MayBeWaitedForAndDroppedOnAnotherThread) {
  run_all(GetParam(), 2, [](Communicator& world) {
    constexpr int kCalls = 400;
    std::vector<int> data(kCalls, 1);
    {
      Waiter waiter;
      for (int call = 0; call < kCalls; ++call) {
        int* const at = &data[static_cast<std::size_t>(call)];
        Handle handle = world.all_reduce(at, at, 1, DataType::kI32, ReduceOp::kSum);
        if (call % 3 == 0)
          expect_ok(handle.wait());
        else
          waiter.give(std::move(handle));
      }
    }
    EXPECT_EQ(data, std::vector<int>(kCalls, 2));
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, HandleTest, testing::Values(TestLayout::kShm, TestLayout::kTcp));

// 20 steps of computation, 20 ms each.
Handle compute_for_long(Communicator& world) {
  const std::uint64_t code =
      encode_compressed(CallKind::kAllReduce, ReduceOp::kSum, CompressionKind::kInt8);
  return ScheduleRun::start(world, {.code = code, .bytes = 4, .name = "computation"},
                            [](CollectiveSchedule& schedule, const GroupPosition&) {
                              for (int step = 0; step < 20; ++step)
                                schedule.add_call([] { os::sleep_for(Seconds{0.02}); });
                            });
}

TEST(Computation, LetsMessagesMoveBetweenItsSteps) {
  run_all(TestLayout::kTcp, 2, [](Communicator& world) {
    Handle computed = compute_for_long(world);
    const int mine = world.rank().value;
    int theirs = -1;
    const Rank other{1 - mine};
    expect_ok(send_recv(world, {&mine, 1, other}, {&theirs, 1, other}, DataType::kI32).wait());
    EXPECT_EQ(theirs, other.value);
    EXPECT_FALSE(computed.done());
    expect_ok(computed.wait());
  });
}

}  // namespace
}  // namespace regatta::comm
