// Ranks that go on after the death of others, and that get new ones.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "regatta/coll/communicator.h"
#include "regatta/coll/forked_world.h"
#include "regatta/coll/test_world.h"
#include "regatta/os/clock.h"

namespace regatta::coll {
namespace {

using testing::HasSubstr;

// What a rank gives, so that a sum tells who took part: at most 48 of them, exact in a double.
double gift_of(int rank) {
  return static_cast<double>(std::uint64_t{1} << rank);
}

double gifts_of(const std::vector<int>& ranks) {
  double sum = 0;
  for (const int rank : ranks)
    sum += gift_of(rank);
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
  const std::vector<double> in(count, gift_of(rank));
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
  if (in != std::vector<double>(count, gift_of(rank))) return "the input has changed";
  return std::to_string(*sum) + " of " + std::to_string(rest->world_size());
}

std::string expected(const std::vector<int>& ranks) {
  return std::to_string(gifts_of(ranks)) + " of " + std::to_string(ranks.size());
}

class ShrinkTest : public testing::TestWithParam<Layout> {};
INSTANTIATE_TEST_SUITE_P(Worlds, ShrinkTest,
                         testing::Values(Layout::kShm, Layout::kTcp, Layout::kMixed));

TEST_P(ShrinkTest, RepeatsTheCollectiveWithinASecondOfTheDeath) {
  for (const std::size_t count : {std::size_t{4}, std::size_t{1} << 18}) {
    ForkedWorld world(4);
    world.start(GetParam(), [&](Communicator& ranks, Blackboard& board) {
      ++board.stage;
      return survive(ranks, ranks.rank().value, count);
    });
    while (world.board().stage.load() < 4)
      os::sleep_for(Seconds{0.01});
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

TEST_P(ShrinkTest, GoesOnAloneWhenAllOthersDied) {
  ForkedWorld world(4);
  world.start(GetParam(), [&](Communicator& ranks, Blackboard& board) {
    ++board.stage;
    return survive(ranks, ranks.rank().value, 1000);
  });
  while (world.board().stage.load() < 4)
    os::sleep_for(Seconds{0.01});
  for (const int rank : {0, 1, 3})
    kill(world.pid(rank), SIGKILL);
  ASSERT_TRUE(world.wait(Seconds{8}));
  EXPECT_EQ(world.result(2), expected({2}));
}

}  // namespace
}  // namespace regatta::coll
