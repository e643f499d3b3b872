#include "regatta/platform/plan_service/plan_pool.h"

#include <atomic>
#include <optional>

#include <gmock/gmock.h>

#include "regatta/base/os/clock.h"

namespace regatta::plan_service {
namespace {

TEST(PlanPool, RunsWorkBesideTheLoopAndAnswersInIt) {
  http::EventLoop loop;
  PlanPool pool(loop, {});
  std::optional<std::string> got;
  ASSERT_TRUE(pool.run([](const auto&) { return Result<std::string>(std::string("plan")); },
                       [&](const Result<std::string>& result) {
                         got = *result;
                         loop.stop();
                       }));
  loop.run();
  EXPECT_EQ(got, "plan");
}

TEST(PlanPool, RefusesMoreThanMayWaitAndEndsWhatIsLate) {
  http::EventLoop loop;
  PlanPool pool(loop, {.threads = 1, .waiting_max = 1, .deadline = Seconds{0.05}});
  std::atomic<bool> has_begun{false};
  int late = 0;
  const auto done = [&](const Result<std::string>& result) {
    if (!result && result.error().code == Code::kTimeout && ++late == 2) loop.stop();
  };
  ASSERT_TRUE(pool.run(
      [&](const std::function<bool()>& is_late) {
        has_begun = true;
        while (!is_late())
          os::sleep_for(Seconds{0.005});
        os::sleep_for(Seconds{0.1});  // until the one that waits is late, too
        return Result<std::string>(Error{Code::kTimeout, "late"});
      },
      done));
  while (!has_begun)
    os::sleep_for(Seconds{0.001});
  const auto never = [](const auto&) { return Result<std::string>(std::string("never")); };
  EXPECT_TRUE(pool.run(never, done));
  const Status refused = pool.run(never, done);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  loop.run();
  EXPECT_EQ(late, 2) << "one in its work, one while it waited";
}

}  // namespace
}  // namespace regatta::plan_service
