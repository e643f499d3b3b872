// Ranks that go on after the death of others, and that get new ones.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/test_forked_world.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

using testing::HasSubstr;

// The input of a rank: a sum, which is exact, shows which of 48 ranks took part.
double input_of(int rank) {
  return static_cast<double>(std::uint64_t{1} << rank % 48);
}

double gifts_of(const std::vector<int>& ranks) {
  double sum = 0;
  for (const int rank : ranks)
    sum += input_of(rank);
  return sum;
}

// The sum of the gifts of all ranks, out of place over `count` elements; or the error.
Result<double> sum_gifts(Communicator& world, const std::vector<double>& in,
                         std::vector<double>& out) {
  REGATTA_TRY_DO(
      world.all_reduce(in.data(), out.data(), in.size(), DataType::kF64, ReduceOp::kSum).wait());
  for (const double value : out)
    if (value != out.front()) return Error{Code::kConflict, "the sums differ"};
  return out.front();
}

// Sums until a rank is lost, shrinks, and sums once more: that sum, or what went wrong.
std::string survive(Communicator& ranks, int rank, std::size_t count) {
  const std::vector<double> in(count, input_of(rank));
  std::vector<double> out(count);
  Communicator world = std::move(ranks);
  for (;;) {
    const auto sum = sum_gifts(world, in, out);
    if (!sum && sum.error().code != Code::kUnavailable) return sum.error().message;
    if (!sum) break;
  }
  auto rest = world.shrink();
  if (!rest) return rest.error().message;
  const auto sum = sum_gifts(*rest, in, out);
  if (!sum) return sum.error().message;
  if (in != std::vector<double>(count, input_of(rank))) return "the input has changed";
  return std::to_string(*sum) + " of " + std::to_string(rest->world_size());
}

std::string expected(const std::vector<int>& ranks) {
  return std::to_string(gifts_of(ranks)) + " of " + std::to_string(ranks.size());
}

// Returns when `count` ranks are here: without a collective, which one rank may end before another.
void gather(std::atomic<int>& arrived, int count) {
  ++arrived;
  while (arrived.load() < count)
    os::sleep_for(Seconds{0.001});
}

class ShrinkTest : public testing::TestWithParam<TestLayout> {};
INSTANTIATE_TEST_SUITE_P(Worlds, ShrinkTest, testing::ValuesIn(test_layouts()));

TEST_P(ShrinkTest, RepeatsTheCollectiveWithinASecondOfTheDeath) {
  for (const std::size_t count : {std::size_t{4}, std::size_t{1} << 18}) {
    ForkedWorld world(4);
    world.start(GetParam(), [&](Communicator& ranks, SharedTestState& state) {
      ++state.stage;
      return survive(ranks, ranks.rank().value, count);
    });
    ASSERT_TRUE(world.reaches_stage(4));
    os::sleep_for(Seconds{0.1});
    const Seconds killed_at = os::monotonic_now();
    kill(world.pid(2), SIGKILL);
    ASSERT_TRUE(world.wait(Seconds{8}));
    for (const int rank : {0, 1, 3}) {
      EXPECT_EQ(world.result(rank), expected({0, 1, 3})) << rank;
      EXPECT_LT(world.ended_at(rank) - killed_at, Seconds{1}) << rank;
    }
  }
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr double kSlowdown = 10;
#else
constexpr double kSlowdown = 1;
#endif

// From the kill to the sum of the survivors, whose processes share the cores of this machine.
TEST(ShrinkTime, IsShortForManyRanks) {
  struct TunedCall {
    TestLayout layout;
    int ranks;
    Seconds limit;  // at least twice what two idle cores need
  };
  for (const TunedCall& one :
       {TunedCall{TestLayout::kShm, 4, Seconds{1}}, TunedCall{TestLayout::kTcp, 4, Seconds{1}},
        TunedCall{TestLayout::kShm, 16, Seconds{1}}, TunedCall{TestLayout::kTcp, 16, Seconds{1}},
        TunedCall{TestLayout::kShm, 64, Seconds{1.5}},
        TunedCall{TestLayout::kMixed, 64, Seconds{2.5}}}) {
    ForkedWorld world(one.ranks);
    world.start(
        one.layout,
        [&](Communicator& ranks, SharedTestState& state) {
          ++state.stage;
          return survive(ranks, ranks.rank().value, 1000);
        },
        [](CommunicatorOptions& options) {
          options.connections = CommunicatorOptions().connections;
        });
    ASSERT_TRUE(world.reaches_stage(one.ranks));
    const Seconds killed_at = os::monotonic_now();
    kill(world.pid(0), SIGKILL);
    ASSERT_TRUE(world.wait(Seconds{20}));
    Seconds slowest{0};
    std::vector<int> rest;
    for (int rank = 1; rank < one.ranks; ++rank)
      rest.push_back(rank);
    for (const int rank : rest) {
      EXPECT_EQ(world.result(rank), expected(rest)) << rank;
      slowest = std::max(slowest, world.ended_at(rank) - killed_at);
    }
    const char* where = one.layout == TestLayout::kShm     ? "one server"
                        : one.layout == TestLayout::kMixed ? "half as many servers"
                                                           : "as many servers";
    std::printf("%d ranks on %s: %.3f s from the death to the end of the last survivor\n",
                one.ranks, where, slowest.value);
    std::fflush(stdout);  // or the next ranks inherit it
    EXPECT_LT(slowest, one.limit * kSlowdown);
  }
}

TEST_P(ShrinkTest, GoesOnAloneWhenAllOthersDied) {
  ForkedWorld world(4);
  world.start(GetParam(), [&](Communicator& ranks, SharedTestState& state) {
    ++state.stage;
    return survive(ranks, ranks.rank().value, 1000);
  });
  ASSERT_TRUE(world.reaches_stage(4));
  for (const int rank : {0, 1, 3})
    kill(world.pid(rank), SIGKILL);
  ASSERT_TRUE(world.wait(Seconds{8}));
  EXPECT_EQ(world.result(2), expected({2}));
}

TEST_P(ShrinkTest, LeavesOutARankThatHangsAfterThePeerTimeout) {
  constexpr Seconds kPeerTimeout{1.5};
  ForkedWorld world(4);
  world.start(
      GetParam(),
      [&](Communicator& ranks, SharedTestState& state) {
        ++state.stage;
        return survive(ranks, ranks.rank().value, 1000);
      },
      [&](CommunicatorOptions& options) { options.peer_timeout = kPeerTimeout; });
  ASSERT_TRUE(world.reaches_stage(4));
  const Seconds stopped_at = os::monotonic_now();
  kill(world.pid(3), SIGSTOP);
  ASSERT_TRUE(world.wait(kPeerTimeout + Seconds{8}, {3}));
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(world.result(rank), expected({0, 1, 2})) << rank;
    EXPECT_LT(world.ended_at(rank) - stopped_at, kPeerTimeout + Seconds{2}) << rank;
  }
  // When it goes on it learns that it is out, and does not go on alone.
  kill(world.pid(3), SIGCONT);
  ASSERT_TRUE(world.wait(Seconds{5}));
  EXPECT_THAT(world.result(3), HasSubstr("shrink: the others go on without this rank"));
}

TEST_P(ShrinkTest, ShrinksAgainAndAgain) {
  ForkedWorld world(4);
  world.start(GetParam(), [&](Communicator& ranks, SharedTestState& state) -> std::string {
    const int me = ranks.rank().value;
    Communicator now = std::move(ranks);
    // Rank 3 dies, then rank 2, then rank 1.
    int arrivals = 0;
    for (int left = 3; left > 0; --left) {
      arrivals += left + 1;
      gather(state.stage, arrivals);
      if (me == left) kill(getpid(), SIGKILL);
      if (now.barrier().wait()) return "it goes on without rank " + std::to_string(left);
      auto rest = now.shrink();
      if (!rest) return rest.error().message;
      if (rest->rank().value != me || rest->world_size() != left) return "wrong ranks";
      now = std::move(*rest);
    }
    return "alone";
  });
  ASSERT_TRUE(world.wait(Seconds{8}));
  EXPECT_EQ(world.result(0), "alone");
}

TEST_P(ShrinkTest, KeepsEverybodyAfterAnErrorWithoutADeath) {
  std::atomic<int> arrived = 0;
  run_all(GetParam(), 4, [&](Communicator& world) {
    auto half = world.split(world.rank().value % 2);
    ASSERT_TRUE(half);
    gather(arrived, 4);
    EXPECT_EQ(half->shrink().error().code, Code::kInvalidInput);
    auto again = world.shrink();
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->rank(), world.rank());
    EXPECT_EQ(again->world_size(), 4);
    EXPECT_EQ(world.shrink().error().code, Code::kConflict);
    // The old ones have ended for good, the new one is as good as new.
    EXPECT_FALSE(world.barrier().wait());
    EXPECT_FALSE(half->barrier().wait());
    auto new_half = again->split(again->rank().value % 2);
    ASSERT_TRUE(new_half);
    const double input = input_of(again->rank().value);
    double sum = 0;
    EXPECT_TRUE(new_half->all_reduce(&input, &sum, 1, DataType::kF64, ReduceOp::kSum).wait());
    const int parity = again->rank().value % 2;
    EXPECT_EQ(sum, gifts_of({parity, parity + 2}));
  });
}

TEST_P(ShrinkTest, LeavesOutARankThatClosesInsteadOfShrinking) {
  std::atomic<int> arrived = 0;
  run_all(GetParam(), 4, [&](Communicator& world) {
    gather(arrived, 4);
    if (world.rank().value == 1) return;
    auto rest = world.shrink();
    ASSERT_TRUE(rest) << rest.error().message;
    EXPECT_EQ(rest->world_size(), 3);
    EXPECT_TRUE(rest->barrier().wait());
  });
}

TEST_P(ShrinkTest, NamesTheRanksThatAreLeftAsBefore) {
  std::atomic<int> arrived = 0;
  run_all(
      GetParam(), 3,
      [&](Communicator& world) {
        gather(arrived, 3);
        if (world.rank().value == 0) return;
        auto rest = world.shrink();
        ASSERT_TRUE(rest) << rest.error().message;
        gather(arrived, 5);
        if (rest->rank().value == 1) return;
        EXPECT_THAT(rest->barrier().wait().error().message, HasSubstr("third at s"));
      },
      [](int, CommunicatorOptions& options) {
        options.rank_names = {"first", "second", "third"};
      });
}

class GrowTest : public testing::TestWithParam<TestLayout> {};
INSTANTIATE_TEST_SUITE_P(Worlds, GrowTest,
                         testing::Values(TestLayout::kShm, TestLayout::kTcp, TestLayout::kMixed));

CommunicatorOptions with_token(CommunicatorOptions options, const std::string& token) {
  options.job_token = token;
  return options;
}

TEST_P(GrowTest, TakesInNewcomersBehindTheMembers) {
  LocalExchange wider(4);
  run_all(GetParam(), 2, [&](Communicator& world) {
    const int rank = world.rank().value;
    std::thread newcomer([&] {
      auto joined = Communicator::connect(Rank{rank + 2}, 4, wider.of(rank + 2),
                                          test_options(GetParam(), rank + 2));
      ASSERT_TRUE(joined) << joined.error().message;
      const double input = input_of(joined->rank().value);
      double sum = 0;
      EXPECT_TRUE(joined->all_reduce(&input, &sum, 1, DataType::kF64, ReduceOp::kSum).wait());
      EXPECT_EQ(sum, gifts_of({0, 1, 2, 3}));
    });
    auto grown = world.grow(4, wider.of(rank));
    ASSERT_TRUE(grown) << grown.error().message;
    EXPECT_EQ(grown->rank().value, rank);
    EXPECT_TRUE(world.barrier().wait());
    const double input = input_of(grown->rank().value);
    double sum = 0;
    EXPECT_TRUE(grown->all_reduce(&input, &sum, 1, DataType::kF64, ReduceOp::kSum).wait());
    EXPECT_EQ(sum, gifts_of({0, 1, 2, 3}));
    newcomer.join();
  });
}

TEST(Grow, LeavesTheMembersAsTheyWereWhenANewcomerMayNotComeIn) {
  LocalExchange wider(3);
  run_all(
      TestLayout::kShm, 2,
      [&](Communicator& world) {
        std::thread stranger;
        if (world.rank().value == 0)
          stranger = std::thread([&] {
            const auto joined = Communicator::connect(
                Rank{2}, 3, wider.of(2), with_token(test_options(TestLayout::kShm, 2), "guess"));
            EXPECT_FALSE(joined);
          });
        const auto grown = world.grow(3, wider.of(world.rank().value));
        EXPECT_FALSE(grown);
        EXPECT_TRUE(world.barrier().wait());
        EXPECT_EQ(world.grow(1, wider.of(0)).error().code, Code::kInvalidInput);
        if (stranger.joinable()) stranger.join();
      },
      [](int, CommunicatorOptions& options) { options.peer_timeout = Seconds{0.5}; });
}

}  // namespace
}  // namespace regatta::comm
