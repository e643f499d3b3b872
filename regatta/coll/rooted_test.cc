// all_to_all and the collectives with a root, in every layout of the ranks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/coll/communicator.h"
#include "regatta/coll/test_status.h"
#include "regatta/coll/test_world.h"

namespace regatta::coll {
namespace {

// Layout, ranks, elements of a part.
using Case = std::tuple<Layout, int, std::size_t>;

std::string case_name(const testing::TestParamInfo<Case>& info) {
  static constexpr const char* kNames[] = {"Shm", "Tcp", "Mixed"};
  return std::string(kNames[static_cast<int>(std::get<0>(info.param))]) + "_n" +
         std::to_string(std::get<1>(info.param)) + "_c" + std::to_string(std::get<2>(info.param));
}

std::int32_t value_of(int rank, std::size_t i) {
  return static_cast<std::int32_t>(i % 1013) * 17 + rank * 100003;
}

class PartsTest : public testing::TestWithParam<Case> {
 protected:
  int ranks() const { return std::get<1>(GetParam()); }
  std::size_t count() const { return std::get<2>(GetParam()); }
  std::size_t whole() const { return count() * static_cast<std::size_t>(ranks()); }

  void run(const std::function<void(Communicator&)>& body) const {
    for (const auto& error : run_ranks(std::get<0>(GetParam()), ranks(), body))
      EXPECT_FALSE(error) << (error ? error->message : "");
  }

  // A vector of a rank's own.
  struct Vector {
    std::vector<std::int32_t> data;
  };
  Vector make(const Communicator&, std::size_t elements, int seed) const {
    Vector vector{std::vector<std::int32_t>(elements)};
    for (std::size_t i = 0; i < elements; ++i)
      vector.data[i] = value_of(seed, i);
    return vector;
  }

  std::int32_t sum_of(std::size_t i) const {
    std::int32_t sum = 0;
    for (int rank = 0; rank < ranks(); ++rank)
      sum += value_of(rank, i);
    return sum;
  }
};

constexpr int kOther = 77;  // fills what is to be overwritten

INSTANTIATE_TEST_SUITE_P(
    Worlds, PartsTest,
    testing::Combine(testing::Values(Layout::kShm, Layout::kTcp, Layout::kMixed),
                     testing::Values(1, 2, 3, 4, 7), testing::Values(0U, 1U, 333U, 300007U)),
    case_name);

TEST_P(PartsTest, AllToAllGivesEveryRankItsPart) {
  run([&](Communicator& world) {
    const int rank = world.rank().value;
    const auto check = [&](std::span<const std::int32_t> out) {
      for (int from = 0; from < ranks(); ++from)
        for (std::size_t i = 0; i < count(); ++i)
          ASSERT_EQ(out[static_cast<std::size_t>(from) * count() + i],
                    value_of(from, world.rank().index() * count() + i));
    };
    Vector in = make(world, whole(), rank);
    Vector out = make(world, whole(), kOther);
    expect_ok(world.all_to_all(in.data.data(), out.data.data(), count(), DataType::kI32).wait());
    check(out.data);
    expect_ok(world.all_to_all(in.data.data(), in.data.data(), count(), DataType::kI32).wait());
    check(in.data);
  });
}

TEST_P(PartsTest, GatherAndScatterAreOpposites) {
  run([&](Communicator& world) {
    const int rank = world.rank().value;
    Vector in = make(world, count(), rank);
    for (int root = 0; root < ranks(); root += 2) {
      Vector all = make(world, rank == root ? whole() : 0, kOther);
      expect_ok(world.gather(in.data.data(), all.data.data(), count(), DataType::kI32, Rank{root})
                    .wait());
      for (std::size_t i = 0; i < all.data.size(); ++i)
        ASSERT_EQ(all.data[i], value_of(static_cast<int>(i / count()), i % count()));
      Vector back = make(world, count(), kOther);
      expect_ok(
          world.scatter(all.data.data(), back.data.data(), count(), DataType::kI32, Rank{root})
              .wait());
      EXPECT_TRUE(std::equal(back.data.begin(), back.data.end(), in.data.begin()));
    }
  });
}

TEST_P(PartsTest, ReduceGivesTheRootTheSum) {
  run([&](Communicator& world) {
    const int rank = world.rank().value;
    for (int root = 0; root < ranks(); root += 2) {
      Vector in = make(world, count(), rank);
      Vector out = make(world, rank == root ? count() : 0, kOther);
      expect_ok(world
                    .reduce(in.data.data(), out.data.data(), count(), DataType::kI32,
                            ReduceOp::kSum, Rank{root})
                    .wait());
      for (std::size_t i = 0; i < out.data.size(); ++i)
        ASSERT_EQ(out.data[i], sum_of(i));
      for (std::size_t i = 0; i < count(); ++i)
        ASSERT_EQ(in.data[i], value_of(rank, i));
    }
  });
}

}  // namespace
}  // namespace regatta::coll
