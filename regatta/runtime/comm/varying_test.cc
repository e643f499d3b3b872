// Collectives whose parts vary, in every layout of the ranks, between private buffers and such that
// the ranks share.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

using testing::HasSubstr;

// The lengths of the parts: small ones fit in a slot, large ones need rounds.
enum class Lengths { kNone, kSmall, kLarge, kMixed };
// TestLayout, ranks, lengths.
using Case = std::tuple<TestLayout, int, Lengths>;

std::string case_name(const testing::TestParamInfo<Case>& info) {
  static constexpr const char* kLayouts[] = {"Shm", "Tcp", "Mixed"};
  static constexpr const char* kLengths[] = {"None", "Small", "Large", "Mixed"};
  return std::string(kLayouts[static_cast<int>(std::get<0>(info.param))]) + "_n" +
         std::to_string(std::get<1>(info.param)) + "_" +
         kLengths[static_cast<int>(std::get<2>(info.param))];
}

std::int32_t value_of(int from, int to, std::size_t i) {
  return from * 1000003 + to * 10007 + static_cast<std::int32_t>(i % 997);
}

// Memory of a rank: private, or shared with the server.
class Memory {
 public:
  Memory(Communicator& world, bool is_shared, std::size_t count) {
    if (is_shared) {
      shared_ = *world.allocate((count + 1) * sizeof(std::int32_t));
      data_ = {reinterpret_cast<std::int32_t*>(shared_.get()), count};
    } else {
      own_.resize(count);
      data_ = own_;
    }
    for (std::int32_t& value : data_)
      value = -1;
  }
  std::int32_t* data() { return data_.data(); }
  std::int32_t& operator[](std::size_t i) { return data_[i]; }

 private:
  std::shared_ptr<std::byte> shared_;
  std::vector<std::int32_t> own_;
  std::span<std::int32_t> data_;
};

class VaryingTest : public testing::TestWithParam<Case> {
 protected:
  int ranks() const { return std::get<1>(GetParam()); }

  void run(const std::function<void(Communicator&)>& body) const {
    run_all(std::get<0>(GetParam()), ranks(), body);
  }

  std::size_t draw(std::mt19937& random) const {
    const std::size_t small = random() % 4 == 0 ? 0 : random() % 50;
    const std::size_t large = random() % 4 == 0 ? 0 : random() % 300000;
    switch (std::get<2>(GetParam())) {
      case Lengths::kNone:
        return 0;
      case Lengths::kSmall:
        return small;
      case Lengths::kLarge:
        return large;
      case Lengths::kMixed:
        return random() % 3 == 0 ? large : small;
    }
    return 0;
  }
  // By giver and taker, the same on all ranks.
  std::vector<std::vector<std::size_t>> draw_lengths(unsigned seed) const {
    std::mt19937 random(seed);
    std::vector<std::vector<std::size_t>> lengths(static_cast<std::size_t>(ranks()));
    for (auto& row : lengths)
      for (int to = 0; to < ranks(); ++to)
        row.push_back(draw(random));
    return lengths;
  }
};

INSTANTIATE_TEST_SUITE_P(Worlds, VaryingTest,
                         testing::Combine(testing::Values(TestLayout::kShm, TestLayout::kTcp,
                                                          TestLayout::kMixed),
                                          testing::Values(1, 2, 3, 4, 7),
                                          testing::Values(Lengths::kNone, Lengths::kSmall,
                                                          Lengths::kLarge, Lengths::kMixed)),
                         case_name);

// Where parts lie: from the last to the first, with gaps of 3 elements.
struct Laid {
  std::vector<std::size_t> counts;
  std::vector<std::size_t> offsets;
  std::size_t end = 0;
  Parts parts() const { return {counts, offsets}; }
};
Laid lay(const std::vector<std::size_t>& counts) {
  Laid laid{counts, std::vector<std::size_t>(counts.size()), 0};
  for (std::size_t i = counts.size(); i-- > 0;) {
    laid.offsets[i] = laid.end;
    laid.end += counts[i] + 3;
  }
  return laid;
}

TEST_P(VaryingTest, AllToAllGivesEveryRankItsPart) {
  run([&](Communicator& world) {
    const int rank = world.rank().value;
    // One after the other, with other places of the parts.
    for (unsigned round = 0; round < 4; ++round) {
      const auto lengths = draw_lengths(round + 1);
      std::vector<std::size_t> taken;
      for (const auto& row : lengths)
        taken.push_back(row[world.rank().index()]);
      const Laid give = lay(lengths[world.rank().index()]);
      const Laid take = lay(taken);
      // Every other rank shares in every other round.
      const bool is_shared = round >= 2 && (round + static_cast<unsigned>(rank)) % 2 == 0;
      Memory in(world, is_shared || round == 3, give.end);
      Memory out(world, round % 2 == 1, take.end);
      for (int to = 0; to < ranks(); ++to)
        for (std::size_t i = 0; i < at(give.counts, to); ++i)
          in[at(give.offsets, to) + i] = value_of(rank, to, i);
      expect_ok(
          world.all_to_all_v(in.data(), give.parts(), out.data(), take.parts(), DataType::kI32)
              .wait());
      for (int from = 0; from < ranks(); ++from) {
        const std::size_t begin = at(take.offsets, from);
        for (std::size_t i = 0; i < at(taken, from); ++i)
          ASSERT_EQ(out[begin + i], value_of(from, rank, i)) << "round " << round;
        ASSERT_EQ(out[begin + at(taken, from)], -1) << "round " << round;
      }
    }
  });
}

TEST_P(VaryingTest, AllGatherLaysThePartsWhereTheOffsetsSay) {
  run([&](Communicator& world) {
    for (unsigned round = 0; round < 3; ++round) {
      const Laid laid = lay(draw_lengths(round + 1)[0]);
      const std::size_t own = laid.counts[world.rank().index()];
      Memory in(world, round == 1, own);
      Memory out(world, round == 2, laid.end);
      for (std::size_t i = 0; i < own; ++i)
        in[i] = value_of(world.rank().value, 0, i);
      expect_ok(world.all_gather_v(in.data(), out.data(), laid.parts(), DataType::kI32).wait());
      for (int from = 0; from < ranks(); ++from) {
        const auto index = static_cast<std::size_t>(from);
        for (std::size_t i = 0; i < laid.counts[index]; ++i)
          ASSERT_EQ(out[laid.offsets[index] + i], value_of(from, 0, i)) << "round " << round;
        ASSERT_EQ(out[laid.offsets[index] + laid.counts[index]], -1) << "round " << round;
      }
    }
  });
}

TEST_P(VaryingTest, ReduceScatterGivesEachRankItsPart) {
  run([&](Communicator& world) {
    const int rank = world.rank().value;
    for (unsigned round = 0; round < 3; ++round) {
      const Laid laid = lay(draw_lengths(round + 1)[0]);
      const std::size_t own = laid.counts[world.rank().index()];
      Memory in(world, round == 1, laid.end);
      Memory out(world, round == 2, own);
      for (int to = 0; to < ranks(); ++to)
        for (std::size_t i = 0; i < at(laid.counts, to); ++i)
          in[at(laid.offsets, to) + i] = value_of(rank, to, i);
      expect_ok(
          world
              .reduce_scatter_v(in.data(), laid.parts(), out.data(), DataType::kI32, ReduceOp::kSum)
              .wait());
      for (std::size_t i = 0; i < own; ++i) {
        std::int32_t sum = 0;
        for (int from = 0; from < ranks(); ++from)
          sum += value_of(from, rank, i);
        ASSERT_EQ(out[i], sum) << "round " << round;
      }
    }
  });
}

class VaryingMistakes : public testing::TestWithParam<TestLayout> {};
INSTANTIATE_TEST_SUITE_P(Layouts, VaryingMistakes,
                         testing::Values(TestLayout::kShm, TestLayout::kTcp));

TEST_P(VaryingMistakes, LengthsThatDoNotMeetAreNamedWithTheirRanks) {
  // Given by rank 1 to rank 0, and taken there: small, large, none.
  for (const auto& [given, taken] : {std::pair<std::size_t, std::size_t>{10, 12},
                                     {10, 0},
                                     {0, 7},
                                     {1 << 20, 0},
                                     {0, 1 << 20},
                                     {1 << 20, (1 << 20) - 1}}) {
    run_all(
        GetParam(), 2,
        [&, counts = std::vector<std::size_t>{taken, given}](Communicator& world) {
          const std::size_t count = counts[world.rank().index()];
          std::vector<std::size_t> give = {5, 5};
          std::vector<std::size_t> take = {5, 5};
          (world.rank().value == 0 ? take[1] : give[0]) = count;
          std::vector<std::uint8_t> in(2 << 20);
          std::vector<std::uint8_t> out(2 << 20);
          Status status =
              world.all_to_all_v(in.data(), {give}, out.data(), {take}, DataType::kU8).wait();
          // One side may have all it needs; the next call is told.
          if (status) status = world.recv(out.data(), 1, DataType::kU8, Rank{1}).wait();
          ASSERT_FALSE(status);
          EXPECT_EQ(status.error().code, Code::kInvalidInput);
          for (const std::string& part :
               {std::string("rank 0 at s0"), std::string("rank 1 at s"), std::to_string(counts[0]),
                std::to_string(counts[1]), std::string("all_to_all_v")})
            EXPECT_THAT(status.error().message, HasSubstr(part));
        },
        [](int, CommunicatorOptions& options) { options.peer_timeout = Seconds{1.0}; });
  }
}

TEST_P(VaryingMistakes, WrongNumbersOfPartsFailAtOnce) {
  run_all(GetParam(), 2, [](Communicator& world) {
    std::vector<std::int32_t> data(10);
    const std::vector<std::size_t> two = {1, 1};
    const std::vector<std::size_t> three = {1, 1, 1};
    EXPECT_THAT(world.all_to_all_v(data.data(), {three}, data.data(), {two}, DataType::kI32)
                    .wait()
                    .error()
                    .message,
                HasSubstr("all_to_all_v: 3 counts and 0 offsets for 2 ranks"));
    EXPECT_THAT(world.all_gather_v(data.data(), data.data(), {two, three}, DataType::kI32)
                    .wait()
                    .error()
                    .message,
                HasSubstr("all_gather_v: 2 counts and 3 offsets for 2 ranks"));
    const std::vector<std::size_t> other = {2, 2};
    EXPECT_THAT(world.all_to_all_v(data.data(), {two}, data.data(), {other}, DataType::kI32)
                    .wait()
                    .error()
                    .message,
                HasSubstr("elements to itself and takes 2"));
    expect_ok(world.barrier().wait());
  });
}

TEST(VaryingCalls, ShowHowFarTheyAre) {
  run_all(TestLayout::kShm, 2, [](Communicator& world) {
    constexpr std::size_t kCount = std::size_t{5} << 20;
    const std::vector<std::size_t> counts(2, kCount);
    const std::vector<std::byte> in(kCount);
    std::vector<std::byte> out(2 * kCount);
    expect_ok(
        world.all_gather_v(in.data(), out.data(), {.counts = counts, .offsets = {}}, DataType::kU8)
            .wait());
    const auto views = inspect_process(getpid());
    ASSERT_TRUE(views);
    for (const RankView& view : *views)
      if (view.rank == world.rank().value) {
        EXPECT_EQ(view.groups[0].collective.moved, kCount);
      }
  });
}

}  // namespace
}  // namespace regatta::comm
