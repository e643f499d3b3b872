#include "regatta/base/http/work_pool.h"

#include <atomic>
#include <optional>

#include <gmock/gmock.h>

#include "regatta/base/os/clock.h"

namespace regatta::http {
namespace {

using Done = std::function<void()>;

TEST(WorkPool, WorksBesideTheLoopAndAnswersInIt) {
  EventLoop loop;
  WorkPool pool(loop, {});
  const std::thread::id own = std::this_thread::get_id();
  bool was_beside = false;
  std::thread::id answered;
  ASSERT_TRUE(pool.run([&]() -> Done {
    was_beside = std::this_thread::get_id() != own;
    return [&] {
      answered = std::this_thread::get_id();
      loop.stop();
    };
  }));
  loop.run();
  EXPECT_TRUE(was_beside);
  EXPECT_EQ(answered, own);
}

TEST(WorkPool, RefusesMoreThanMayWaitAndLeavesOutWhatWaitsAtItsEnd) {
  EventLoop loop;
  std::atomic<bool> has_begun{false};
  std::atomic<bool> may_end{false};
  int answers = 0;
  {
    WorkPool pool(loop, {.threads = 1, .waiting_max = 1, .refusal = "later"});
    const auto answer = [&] { ++answers; };
    ASSERT_TRUE(pool.run([&]() -> Done {
      has_begun = true;
      while (!may_end)
        os::sleep_for(Seconds{0.001});
      return answer;
    }));
    while (!has_begun)
      os::sleep_for(Seconds{0.001});
    EXPECT_TRUE(pool.run([&]() -> Done { return answer; }));
    const Status refused = pool.run([&]() -> Done { return answer; });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kExhausted);
    EXPECT_EQ(refused.error().message, "later");
    may_end = true;
  }
  while (loop.poll()) {
  }
  EXPECT_EQ(answers, 0) << "nobody is there any more";
}

}  // namespace
}  // namespace regatta::http
