#include "regatta/app/cli/internal/kept_process.h"

#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"

namespace regatta::cli {
namespace {

// Waits until the process has ended.
os::ExitState end_of(KeptProcess& process, Seconds now) {
  for (int i = 0; i < 5000; ++i) {
    if (const auto& end = process.end(now)) return *end;
    os::sleep_for(Seconds{0.002});
  }
  ADD_FAILURE() << "it runs";
  return {};
}

std::function<Result<pid_t>()> command(const std::string& text) {
  return [text] { return os::spawn({"sh", "-c", text}, {}); };
}

TEST(KeptProcess, IsStartedAgainAtOnceWhenItIsKilled) {
  KeptProcess process(command("exec sleep 60"));
  ASSERT_TRUE(process.start(Seconds{10}));
  EXPECT_FALSE(process.end(Seconds{20}));
  EXPECT_FALSE(process.restart(Seconds{20}));
  const pid_t first = process.pid();
  ASSERT_TRUE(os::send_signal(first, SIGKILL));
  EXPECT_EQ(end_of(process, Seconds{20}).signal, SIGKILL);
  EXPECT_TRUE(process.restart(Seconds{20}));
  EXPECT_NE(process.pid(), first);
  EXPECT_FALSE(process.end(Seconds{20}));
  EXPECT_EQ(process.restarts(), 1U);
  EXPECT_EQ(process.quick_ends(), 0);
  EXPECT_TRUE(os::terminate(process.pid(), Seconds{1}));
}

TEST(KeptProcess, WaitsLongerEachTimeWhenItEndsSoon) {
  KeptProcess process(command("exit 3"));
  Seconds now{1};
  ASSERT_TRUE(process.start(now));
  std::vector<double> pauses;
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(end_of(process, now).status, 3);
    pauses.push_back(process.due().value - now.value);
    const bool waits = pauses.back() > 0;
    EXPECT_EQ(process.restart(now), !waits);
    now = process.due();
    if (waits) {
      EXPECT_TRUE(process.restart(now));
    }
  }
  const std::vector<double> expected = {0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5};
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(pauses[i], expected[i], 1e-9);
  EXPECT_EQ(process.restarts(), 9U);
  // One that held out is started at once again.
  EXPECT_EQ(end_of(process, now + Seconds{60}).status, 3);
  EXPECT_EQ(process.due(), now + Seconds{60});
}

TEST(KeptProcess, IsTriedAgainWhenItCannotBeStarted) {
  bool can_start = true;
  KeptProcess process([&]() -> Result<pid_t> {
    if (!can_start) return Error{Code::kExhausted, "no more processes"};
    return os::spawn({"true"}, {});
  });
  ASSERT_TRUE(process.start(Seconds{1}));
  EXPECT_TRUE(end_of(process, Seconds{5}).is_success());
  can_start = false;
  EXPECT_FALSE(process.restart(Seconds{5}));
  EXPECT_FALSE(process.restart(process.due()));
  EXPECT_GT(process.due(), Seconds{5});
  EXPECT_EQ(process.restarts(), 0U);
  can_start = true;
  EXPECT_TRUE(process.restart(process.due()));
  end_of(process, process.due());
}

}  // namespace
}  // namespace regatta::cli
