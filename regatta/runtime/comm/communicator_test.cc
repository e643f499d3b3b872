#include "regatta/runtime/comm/communicator.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

// Small whole numbers: sums are exact in every type.
template <typename T>
std::vector<T> values(int rank, std::size_t count) {
  std::vector<T> out(count);
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<T>((i * 7 + static_cast<std::size_t>(rank) * 3) % 11);
  return out;
}

using Case = std::tuple<TestLayout, int, std::size_t>;

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(name_of_test_layout(std::get<0>(info.param))) + "_n" +
         std::to_string(std::get<1>(info.param)) + "_c" + std::to_string(std::get<2>(info.param));
}

class CollectiveTest : public testing::TestWithParam<Case> {
 protected:
  TestLayout layout() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
  std::size_t count() const { return std::get<2>(GetParam()); }

  void run(const std::function<void(Communicator&)>& body) const {
    run_all(layout(), ranks(), body);
  }
};

INSTANTIATE_TEST_SUITE_P(Worlds, CollectiveTest,
                         testing::Combine(testing::ValuesIn(test_layouts()),
                                          testing::Values(1, 2, 3, 4, 6, 8),
                                          testing::Values(0U, 1U, 7U, 1000U, 1U << 20)),
                         case_name);

TEST_P(CollectiveTest, AllReduceSumsInAndOutOfPlace) {
  std::vector<float> sum(count());
  for (int r = 0; r < ranks(); ++r) {
    const auto part = values<float>(r, count());
    for (std::size_t i = 0; i < count(); ++i)
      sum[i] += part[i];
  }
  run([&](Communicator& world) {
    const auto in = values<float>(world.rank().value, count());
    std::vector<float> out(count(), -1);
    expect_ok(
        world.all_reduce(in.data(), out.data(), count(), DataType::kF32, ReduceOp::kSum).wait());
    EXPECT_TRUE(out == sum);
    auto both = in;
    expect_ok(
        world.all_reduce(both.data(), both.data(), count(), DataType::kF32, ReduceOp::kSum).wait());
    EXPECT_TRUE(both == sum);
  });
}

// Two ranks a server, two servers a domain.
void in_two_domains(int rank, CommunicatorOptions& options) {
  options.domain = rank < 4 ? "rack 0" : "rack 1";
  options.forced.algorithm = Algorithm::kHierarchical;
}

TEST(ScaleUpDomain, HasAllReduceWorkInsideItFirst) {
  constexpr std::size_t kCount = 1U << 18;
  constexpr long long kBytes = kCount * sizeof(float);
  run_all(
      TestLayout::kMixed, 8,
      [&](Communicator& world) {
        std::vector<float> sum(kCount, static_cast<float>(1 << world.rank().value));
        expect_ok(world.all_reduce(sum.data(), sum.data(), kCount, DataType::kF32, ReduceOp::kSum)
                      .wait());
        EXPECT_EQ(sum.front(), 255);
        EXPECT_EQ(sum.back(), 255);
        // Between domains only the ranks that hold the same quarter meet.
        const Traffic traffic = traffic_of(world);
        const int self = world.rank().value;
        for (int peer = 0; peer < 8; ++peer) {
          const long long sent = at(traffic.network_bytes, peer);
          if (self / 4 == peer / 4) continue;
          const double wanted = self % 4 == peer % 4 ? kBytes / 4.0 : 0;
          EXPECT_NEAR(static_cast<double>(sent), wanted, kBytes / 100.0) << self << " to " << peer;
        }
      },
      in_two_domains);
}

TEST(ScaleUpDomain, IsTheSameForAllRanksOfAServer) {
  const auto errors = run_ranks(
      TestLayout::kMixed, 4, [](Communicator&) {},
      [](int rank, CommunicatorOptions& options) {
        options.domain = "rack " + std::to_string(rank);
        options.peer_timeout = Seconds{1};
      });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->message,
              "connect: ranks of server 's0' name the domains 'rack 0' and 'rack 1': give one "
              "domain to a server");
  }
}

TEST_P(CollectiveTest, ReduceScatterGivesEachRankItsPart) {
  const std::size_t each = count() / 8;
  const std::size_t all = each * static_cast<std::size_t>(ranks());
  std::vector<std::int32_t> sum(all);
  for (int r = 0; r < ranks(); ++r) {
    const auto part = values<std::int32_t>(r, all);
    for (std::size_t i = 0; i < all; ++i)
      sum[i] += part[i];
  }
  run([&](Communicator& world) {
    auto in = values<std::int32_t>(world.rank().value, all);
    const auto first = static_cast<std::ptrdiff_t>(each * world.rank().index());
    const std::vector<std::int32_t> mine(sum.begin() + first,
                                         sum.begin() + first + static_cast<std::ptrdiff_t>(each));
    std::vector<std::int32_t> out(each, -1);
    expect_ok(
        world.reduce_scatter(in.data(), out.data(), each, DataType::kI32, ReduceOp::kSum).wait());
    EXPECT_TRUE(out == mine);
    expect_ok(
        world.reduce_scatter(in.data(), in.data(), each, DataType::kI32, ReduceOp::kSum).wait());
    EXPECT_TRUE(std::equal(mine.begin(), mine.end(), in.begin()));
  });
}

void reduce_scatter_large_parts(Communicator& world) {
  constexpr std::size_t kEach = 1000003;
  const int ranks = world.world_size();
  std::vector<std::int32_t> in(kEach * static_cast<std::size_t>(ranks), 1);
  std::vector<std::int32_t> out(kEach);
  const auto reduce = [&](std::int32_t* to) {
    expect_ok(world.reduce_scatter(in.data(), to, kEach, DataType::kI32, ReduceOp::kSum).wait());
    EXPECT_EQ(std::count(to, to + kEach, ranks), static_cast<std::ptrdiff_t>(kEach));
  };
  reduce(out.data());
  reduce(in.data() + kEach * world.rank().index());
}

// Parts that take more than the credit of a connection: nobody may wait for the other to begin.
TEST(ReduceScatter, OfLargePartsNeedsNoCredit) {
  for (const TestLayout layout : {TestLayout::kShm, TestLayout::kTcp}) {
    run_all(layout, 2, reduce_scatter_large_parts);
    run_all(layout, 3, reduce_scatter_large_parts);
  }
}

TEST_P(CollectiveTest, AllGatherLaysPartsInRankOrder) {
  const std::size_t each = count() / 8;
  std::vector<double> whole;
  for (int r = 0; r < ranks(); ++r) {
    const auto part = values<double>(r, each);
    whole.insert(whole.end(), part.begin(), part.end());
  }
  run([&](Communicator& world) {
    const auto in = values<double>(world.rank().value, each);
    std::vector<double> out(whole.size(), -1);
    expect_ok(world.all_gather(in.data(), out.data(), each, DataType::kF64).wait());
    EXPECT_TRUE(out == whole);
    // In place: the input at the start of the output, and at its final place.
    std::vector<double> start(whole.size(), -1);
    std::copy(in.begin(), in.end(), start.begin());
    expect_ok(world.all_gather(start.data(), start.data(), each, DataType::kF64).wait());
    EXPECT_TRUE(start == whole);
    std::vector<double> place(whole.size(), -1);
    double* const mine = place.data() + each * world.rank().index();
    std::copy(in.begin(), in.end(), mine);
    expect_ok(world.all_gather(mine, place.data(), each, DataType::kF64).wait());
    EXPECT_TRUE(place == whole);
  });
}

TEST_P(CollectiveTest, BroadcastReachesEveryRankFromEveryRoot) {
  run([&](Communicator& world) {
    for (int root = 0; root < world.world_size(); ++root) {
      const auto expected = values<std::uint8_t>(root, count());
      auto data = world.rank().value == root ? expected : std::vector<std::uint8_t>(count());
      expect_ok(world.broadcast(data.data(), count(), DataType::kU8, Rank{root}).wait());
      EXPECT_TRUE(data == expected);
    }
  });
}

TEST_P(CollectiveTest, EveryPairSendsBothWaysAtOnce) {
  run([&](Communicator& world) {
    const auto mine = values<std::int64_t>(world.rank().value, count() / 8);
    std::vector<std::vector<std::int64_t>> theirs(static_cast<std::size_t>(world.world_size()),
                                                  std::vector<std::int64_t>(mine.size()));
    std::vector<Handle> handles;
    for (int peer = 0; peer < world.world_size(); ++peer) {
      handles.push_back(world.send(mine.data(), mine.size(), DataType::kI64, Rank{peer}));
      handles.push_back(
          world.recv(at(theirs, peer).data(), mine.size(), DataType::kI64, Rank{peer}));
    }
    for (Handle& handle : handles)
      expect_ok(handle.wait());
    for (int peer = 0; peer < world.world_size(); ++peer)
      EXPECT_TRUE(at(theirs, peer) == values<std::int64_t>(peer, mine.size()));
    expect_ok(world.barrier().wait());
  });
}

}  // namespace
}  // namespace regatta::comm
