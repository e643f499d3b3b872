// The ranks watch themselves: a rank that is wrong, late, stopped or dead is named within 2 s, over
// every transport. More rounds: --gtest_repeat.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/compress/all_reduce.h"
#include "regatta/runtime/comm/internal/test_forked_world.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_world.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr Seconds kNamedWithin{2.0};
constexpr int kRanks = 4;

Status reduce(Communicator& world, std::vector<float>& data, std::size_t count,
              ReduceOp op = ReduceOp::kSum, DataType type = DataType::kF32) {
  return world.all_reduce(data.data(), data.data(), count, type, op).wait();
}

// The report of a rank after calls that do not match.
std::string outcome(const Status& status, Seconds since) {
  if (status) return "no error";
  if (os::monotonic_now() - since > kNamedWithin) return "too late: " + status.error().message;
  return (status.error().code == Code::kConflict ? "conflict: " : "other: ") +
         status.error().message;
}

class WatchTest : public testing::TestWithParam<TestLayout> {
 protected:
  using Calls = std::function<Status(Communicator&, bool is_odd)>;

  // Rank 2 calls something else than the others: all get that error.
  static void expect_conflict(const Calls& calls, const std::string& theirs,
                              const std::string& others) {
    ForkedWorld world(kRanks);
    world.start(
        GetParam(),
        [&](Communicator& ranks, SharedTestState&) -> std::string {
          std::vector<float> data(100);
          if (const Status status = reduce(ranks, data, 100); !status)
            return status.error().message;
          const Seconds start = os::monotonic_now();
          return outcome(calls(ranks, ranks.rank().value == 2), start);
        },
        [](CommunicatorOptions& options) { options.peer_timeout = Seconds{10}; });
    ASSERT_TRUE(world.wait(Seconds{20}));
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_THAT(world.result(rank), StartsWith("conflict: rank 2 at s")) << rank;
      EXPECT_THAT(world.result(rank), HasSubstr(" called " + theirs + " where rank 0")) << rank;
      EXPECT_THAT(world.result(rank), HasSubstr(" called " + others + ": call the same")) << rank;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, WatchTest,
                         testing::Values(TestLayout::kShm, TestLayout::kTcp, TestLayout::kMixed));

TEST_P(WatchTest, NamesTheRankThatGivesAnotherSize) {
  std::vector<float> data(1 << 20);
  expect_conflict([&](Communicator& world,
                      bool is_odd) { return reduce(world, data, is_odd ? 1 << 20 : 1 << 18); },
                  "all_reduce of 4 MiB (f32, sum)", "all_reduce of 1 MiB (f32, sum)");
}

TEST_P(WatchTest, NamesTheRankThatGivesAnotherSmallSize) {
  std::vector<float> data(100);
  expect_conflict(
      [&](Communicator& world, bool is_odd) { return reduce(world, data, is_odd ? 10 : 11); },
      "all_reduce of 40 B (f32, sum)", "all_reduce of 44 B (f32, sum)");
}

TEST_P(WatchTest, NamesTheRankThatGivesAnotherTypeOrReduction) {
  std::vector<float> data(4096);
  expect_conflict(
      [&](Communicator& world, bool is_odd) {
        return reduce(world, data, 4096, ReduceOp::kSum, is_odd ? DataType::kI32 : DataType::kF32);
      },
      "all_reduce of 16 KiB (i32, sum)", "all_reduce of 16 KiB (f32, sum)");
  expect_conflict(
      [&](Communicator& world, bool is_odd) {
        return reduce(world, data, 4096, is_odd ? ReduceOp::kMax : ReduceOp::kSum);
      },
      "all_reduce of 16 KiB (f32, max)", "all_reduce of 16 KiB (f32, sum)");
}

TEST_P(WatchTest, NamesTheRankThatCallsInAnotherOrder) {
  std::vector<float> data(1 << 18);
  expect_conflict(
      [&](Communicator& world, bool is_odd) -> Status {
        const Handle first = is_odd ? world.barrier() : Handle();
        const Status status = reduce(world, data, 1 << 18);
        return status ? world.barrier().wait() : status;
      },
      "barrier", "all_reduce of 1 MiB (f32, sum)");
}

Status compress_as(Communicator& world, std::vector<float>& data, compress::CompressionKind kind) {
  const auto report =
      compress::all_reduce(world, {data.data(), data.data(), data.size()}, {.kind = kind}, nullptr)
          .wait();
  return report ? Status() : report.error();
}

TEST_P(WatchTest, NamesTheRankThatCompressesDifferently) {
  std::vector<float> data(100);
  expect_conflict(
      [&](Communicator& world, bool is_odd) {
        return compress_as(
            world, data,
            is_odd ? compress::CompressionKind::kFp8E4m3 : compress::CompressionKind::kInt8);
      },
      "all_reduce of 400 B (f32, sum, as fp8_e4m3)", "all_reduce of 400 B (f32, sum, as int8)");
}

// Compressed calls are numbered on their own where the others go through shared memory.
TEST_P(WatchTest, FailsNothingWhereARankIsLateAfterCompressedCalls) {
  ForkedWorld world(kRanks);
  world.start(GetParam(), [](Communicator& ranks, SharedTestState&) -> std::string {
    std::vector<float> data(1000);
    for (int call = 0; call < 30; ++call)
      if (const Status status = compress_as(ranks, data, compress::CompressionKind::kInt8); !status)
        return status.error().message;
    if (ranks.rank().value == 2) os::sleep_for(Seconds{1.5});
    const Status status = ranks.barrier().wait();
    return status ? "" : status.error().message;
  });
  ASSERT_TRUE(world.wait(Seconds{20}));
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(world.result(rank), "");
}

// Asks the record of the rank until it says `text`, as long as that may take.
bool says(ForkedWorld& world, int rank, const std::string& text, Seconds since) {
  while (os::monotonic_now() - since < kNamedWithin) {
    const auto views = inspect_process(world.pid(rank));
    if (views && views->front().verdict.find(text) != std::string::npos) return true;
    os::sleep_for(Seconds{0.01});
  }
  return false;
}

std::string verdict_of(ForkedWorld& world, int rank) {
  const auto views = inspect_process(world.pid(rank));
  return views ? views->front().verdict : views.error().message;
}

TEST_P(WatchTest, NamesAStoppedRankUntilItContinues) {
  ForkedWorld world(kRanks);
  world.start(
      GetParam(),
      [](Communicator& ranks, SharedTestState& state) -> std::string {
        std::vector<float> data(1000);
        ++state.stage;
        // The ranks agree on the end.
        for (float ends = 0; ends == 0;) {
          ends = ranks.rank().value == 0 && state.stage.load() >= 100 ? 1.0F : 0.0F;
          data.back() = ends;
          if (const Status status = reduce(ranks, data, data.size()); !status)
            return status.error().message;
          ends = data.back();
        }
        return "";
      },
      [](CommunicatorOptions& options) { options.peer_timeout = Seconds{20}; });
  ASSERT_TRUE(world.reaches_stage(kRanks));
  os::sleep_for(Seconds{0.1});
  const Seconds stopped_at = os::monotonic_now();
  kill(world.pid(3), SIGSTOP);
  for (const int rank : {0, 1, 2})
    EXPECT_TRUE(says(world, rank, ": rank 3 at s", stopped_at))
        << rank << ": " << verdict_of(world, rank);
  kill(world.pid(3), SIGCONT);
  const Seconds continued_at = os::monotonic_now();
  while (!verdict_of(world, 0).empty() && os::monotonic_now() - continued_at < kNamedWithin)
    os::sleep_for(Seconds{0.01});
  EXPECT_THAT(verdict_of(world, 0), IsEmpty());
  world.state().stage = 100;
  EXPECT_TRUE(world.wait(Seconds{10}));
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(world.result(rank), "") << rank;
}

TEST_P(WatchTest, NamesTheRankThatHasNotCalledAndFailsNothing) {
  ForkedWorld world(kRanks);
  world.start(GetParam(), [](Communicator& ranks, SharedTestState& state) -> std::string {
    ++state.stage;
    while (ranks.rank().value == 1 && state.stage.load() < 100)
      os::sleep_for(Seconds{0.01});
    const Status status = ranks.barrier().wait();
    return status ? "" : status.error().message;
  });
  ASSERT_TRUE(world.reaches_stage(kRanks));
  const Seconds start = os::monotonic_now();
  for (const int rank : {0, 2, 3}) {
    EXPECT_TRUE(says(world, rank, "barrier: no progress for ", start)) << rank;
    EXPECT_THAT(verdict_of(world, rank), HasSubstr(": rank 1 at s")) << rank;
    EXPECT_THAT(verdict_of(world, rank), HasSubstr("has not called it")) << rank;
  }
  world.state().stage = 100;
  EXPECT_TRUE(world.wait(Seconds{10}));
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(world.result(rank), "") << rank;
}

TEST_P(WatchTest, NamesTheRanksOfTheWorldInATransferOfASplit) {
  ForkedWorld world(kRanks);
  world.start(GetParam(), [](Communicator& ranks, SharedTestState& state) -> std::string {
    auto pair = ranks.split(ranks.rank().value % 2);
    if (!pair) return pair.error().message;
    ++state.stage;
    std::vector<float> data(1024);
    if (ranks.rank().value == 1) {
      const Status status = pair->recv(data.data(), data.size(), DataType::kF32, Rank{1}).wait();
      return status ? "" : status.error().message;
    }
    while (state.stage.load() < 100)
      os::sleep_for(Seconds{0.01});
    if (ranks.rank().value != 3) return "";
    const Status status = pair->send(data.data(), data.size(), DataType::kF32, Rank{0}).wait();
    return status ? "" : status.error().message;
  });
  ASSERT_TRUE(world.reaches_stage(kRanks));
  EXPECT_TRUE(says(world, 1, "recv of 4 KiB from rank 3: no progress for ", os::monotonic_now()))
      << verdict_of(world, 1);
  EXPECT_THAT(verdict_of(world, 1), HasSubstr("rank 3 at s"));
  world.state().stage = 100;
  EXPECT_TRUE(world.wait(Seconds{10}));
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(world.result(rank), "") << rank;
}

TEST_P(WatchTest, LeavesAFlightFileOfEveryRankThatFailed) {
  const auto folder = os::TempFolder::create();
  ASSERT_TRUE(folder);
  ForkedWorld world(kRanks);
  world.start(
      GetParam(),
      [](Communicator& ranks, SharedTestState& state) -> std::string {
        std::vector<float> data(1000);
        ++state.stage;
        for (;;)
          if (const Status status = reduce(ranks, data, data.size()); !status)
            return status.error().message;
      },
      [&](CommunicatorOptions& options) {
        options.flight_dir = folder->path() + "/flights";
        options.job_name = "flown";
      });
  ASSERT_TRUE(world.reaches_stage(kRanks));
  os::sleep_for(Seconds{0.1});
  kill(world.pid(2), SIGKILL);
  ASSERT_TRUE(world.wait(Seconds{10}));
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto view = read_flight_file(folder->path() + "/flights/regatta-flight-flown-rank" +
                                       std::to_string(rank) + ".json");
    ASSERT_EQ(view.has_value(), rank != 2) << rank;
    if (!view) continue;
    EXPECT_THAT(view->error, HasSubstr("rank 2 at s")) << rank;
    EXPECT_FALSE(view->flights.empty()) << rank;
    ASSERT_EQ(view->groups.size(), 1U) << rank;
    EXPECT_EQ(view->groups[0].members.size(), static_cast<std::size_t>(kRanks));
  }
}

TEST(Watch, ShowsNothingWhenItIsOff) {
  run_all(
      TestLayout::kShm, 2,
      [](Communicator& world) {
        EXPECT_TRUE(world.barrier().wait());
        EXPECT_FALSE(inspect_process(getpid()));
      },
      [](int, CommunicatorOptions& options) { options.watch = false; });
}

}  // namespace
}  // namespace regatta::comm
