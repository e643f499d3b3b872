#include "regatta/gpu/sharing/internal/swap/swappable_memory.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/gpu/sharing/internal/swap/fake_swap_device.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kBlock = SwappableMemory::kBlock;

class SwappableMemoryTest : public testing::Test {
 protected:
  // So many blocks, written with a number that tells them apart.
  std::uint64_t allocate(int blocks) {
    const auto address = swappable_.allocate(nullptr, static_cast<std::uint64_t>(blocks) * kBlock);
    EXPECT_TRUE(address && swappable_.move_in(~0ULL));
    write(*address, blocks);
    return *address;
  }
  void write(std::uint64_t address, int blocks) {
    swappable_.wrote(address);
    for (int i = 0; i < blocks; ++i)
      device_.at(address + static_cast<std::uint64_t>(i) * kBlock) = number_of(address) + i;
  }
  void expect_content(std::uint64_t address, int blocks) {
    for (int i = 0; i < blocks; ++i)
      EXPECT_EQ(device_.at(address + static_cast<std::uint64_t>(i) * kBlock),
                number_of(address) + i);
  }
  void TearDown() override { EXPECT_THAT(device_.errors, testing::IsEmpty()); }
  static int number_of(std::uint64_t address) { return static_cast<int>(address / kBlock) * 1000; }

  FakeSwapDevice device_;
  SwappableMemory swappable_{device_, 2 * kBlock};
};

TEST_F(SwappableMemoryTest, TakesNothingOfTheDeviceBeforeItIsBroughtIn) {
  const auto address = swappable_.allocate(nullptr, 3 * kBlock + 1);
  ASSERT_TRUE(address);
  EXPECT_EQ(device_.used, 0U);
  EXPECT_EQ(swappable_.totals().all, 4 * kBlock);
  EXPECT_TRUE(swappable_.move_in(~0ULL));
  EXPECT_EQ(device_.used, 4 * kBlock);
  EXPECT_EQ(device_.copies, 0) << "there was nothing to copy";
}

TEST_F(SwappableMemoryTest, BringsBackWhatWasThereAtTheSameAddresses) {
  const std::uint64_t a = allocate(5);
  const std::uint64_t b = allocate(8);
  EXPECT_TRUE(swappable_.move_out(0));
  EXPECT_EQ(device_.used, 0U);
  EXPECT_FALSE(device_.is_mapped(a));
  EXPECT_EQ(swappable_.totals().moved_out, 13 * kBlock);
  EXPECT_TRUE(swappable_.move_in(~0ULL));
  expect_content(a, 5);
  expect_content(b, 8);
  EXPECT_GT(device_.most_under_way, 2U);
}

TEST_F(SwappableMemoryTest, CopiesNeitherWhatWasNeverWrittenNorWhatTheHostHas) {
  const std::uint64_t a = allocate(4);
  const auto blank = swappable_.allocate(nullptr, 10 * kBlock);
  ASSERT_TRUE(blank && swappable_.move_in(~0ULL));
  EXPECT_TRUE(swappable_.move_out(0));
  EXPECT_EQ(device_.copies, 2);
  EXPECT_TRUE(swappable_.move_in(~0ULL));
  EXPECT_TRUE(swappable_.move_out(0));
  EXPECT_EQ(device_.copies, 4) << "in, and not out again";
  EXPECT_TRUE(swappable_.move_in(~0ULL));
  swappable_.wrote_all();
  EXPECT_TRUE(swappable_.move_out(0));
  EXPECT_EQ(device_.copies, 6 + 7) << "a launch may have written to everything";
  EXPECT_TRUE(swappable_.move_in(~0ULL));
  expect_content(a, 4);
}

TEST_F(SwappableMemoryTest, TakesTheLeastRecentlyUsedFirstAndNoMoreThanItHasTo) {
  const std::uint64_t a = allocate(4);
  const std::uint64_t b = allocate(4);
  swappable_.used(a);
  EXPECT_TRUE(swappable_.move_out(5 * kBlock));
  EXPECT_EQ(swappable_.totals().resident, 4 * kBlock);
  EXPECT_TRUE(device_.is_mapped(a));
  EXPECT_FALSE(device_.is_mapped(b));
  swappable_.used(b);
  EXPECT_TRUE(swappable_.move_out(0));
  EXPECT_TRUE(swappable_.move_in(4 * kBlock));
  EXPECT_TRUE(device_.is_mapped(b));
  EXPECT_FALSE(device_.is_mapped(a));
}

TEST_F(SwappableMemoryTest, IsTriedAgainWhereTheDeviceHasNoRoom) {
  const std::uint64_t a = allocate(6);
  EXPECT_TRUE(swappable_.move_out(0));
  device_.room = 3 * kBlock;
  EXPECT_FALSE(swappable_.move_in(~0ULL));
  EXPECT_EQ(swappable_.totals().resident, 2 * kBlock);
  EXPECT_EQ(device_.used, 2 * kBlock);
  device_.room = ~0ULL;
  EXPECT_TRUE(swappable_.move_in(~0ULL));
  expect_content(a, 6);
}

TEST_F(SwappableMemoryTest, LosesNothingWhereTheHostHasNoMoreOrCopiesFail) {
  const std::uint64_t a = allocate(8);
  device_.host_room = 4 * kBlock;
  EXPECT_FALSE(swappable_.move_out(0));
  EXPECT_EQ(swappable_.totals().resident, 4 * kBlock);
  EXPECT_TRUE(swappable_.move_in(~0ULL));
  device_.host_room = ~0ULL;
  swappable_.wrote_all();
  device_.copies_left = 3;
  EXPECT_FALSE(swappable_.move_out(0));
  device_.copies_left = 1 << 30;
  EXPECT_TRUE(swappable_.move_in(~0ULL));
  expect_content(a, 8);
}

TEST_F(SwappableMemoryTest, FreesWhatIsThereAndWhatIsAway) {
  const std::uint64_t a = allocate(4);
  const std::uint64_t b = allocate(6);
  EXPECT_TRUE(swappable_.move_out(6 * kBlock));
  EXPECT_TRUE(swappable_.free(a));
  EXPECT_TRUE(swappable_.free(b));
  EXPECT_FALSE(swappable_.free(b));
  EXPECT_EQ(device_.used + device_.host_used + device_.reserved, 0U);
  EXPECT_EQ(swappable_.totals().all + swappable_.totals().resident + swappable_.totals().pinned,
            0U);
}

TEST_F(SwappableMemoryTest, FindsAnAllocationByAnyAddressInIt) {
  const auto a = swappable_.allocate(this, 3 * kBlock - 7);
  ASSERT_TRUE(a);
  const auto found = swappable_.find(*a + 2 * kBlock);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->address, *a);
  EXPECT_EQ(found->bytes, 3 * kBlock - 7);
  EXPECT_FALSE(swappable_.find(*a + 3 * kBlock));
  EXPECT_FALSE(swappable_.find(*a - 1));
  EXPECT_EQ(swappable_.of_home(this).size(), 1U);
  EXPECT_TRUE(swappable_.of_home(nullptr).empty());
}

TEST_F(SwappableMemoryTest, KeepsItsContentUnderAnyMoves) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](int limit) {
      return std::uniform_int_distribution(0, limit - 1)(random);
    };
    std::map<std::uint64_t, int> known;
    for (int step = 0; step < 200; ++step) {
      switch (below(5)) {
        case 0:
          if (known.size() < 8) {
            const int blocks = 1 + below(7);
            known[allocate(blocks)] = blocks;
          }
          break;
        case 1:
          if (!known.empty()) {
            EXPECT_TRUE(swappable_.free(known.begin()->first));
            known.erase(known.begin());
          }
          break;
        case 2: {
          const std::uint64_t limit = static_cast<std::uint64_t>(below(40)) * kBlock;
          EXPECT_TRUE(swappable_.move_out(limit));
          EXPECT_LE(swappable_.totals().resident, limit);
          break;
        }
        case 3:
          EXPECT_TRUE(swappable_.move_in(static_cast<std::uint64_t>(below(40)) * kBlock));
          break;
        default:
          EXPECT_TRUE(swappable_.move_in(~0ULL));
          swappable_.wrote_all();
          for (const auto& [address, blocks] : known)
            expect_content(address, blocks);
      }
      EXPECT_EQ(device_.used, swappable_.totals().resident) << seed;
      EXPECT_EQ(device_.host_used, swappable_.totals().pinned) << seed;
      EXPECT_LE(swappable_.totals().pinned, swappable_.totals().all) << seed;
    }
    for (const auto& [address, blocks] : known)
      swappable_.free(address);
    ASSERT_TRUE(device_.errors.empty()) << seed;
  }
  EXPECT_EQ(device_.used + device_.host_used + device_.reserved, 0U);
}

}  // namespace
}  // namespace regatta::sharing
