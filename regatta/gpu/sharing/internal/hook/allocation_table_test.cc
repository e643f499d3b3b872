#include "regatta/gpu/sharing/internal/hook/allocation_table.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace regatta::sharing::hook {
namespace {

constexpr std::uint64_t kBase = 0x7f00'0000'0000ULL;

TEST(Blocks, ChargesABlockOnceHoweverManyLieInIt) {
  Blocks blocks;
  EXPECT_EQ(blocks.add(kBase, 512), kBlockBytes);
  EXPECT_EQ(blocks.add(kBase + 512, 1000), 0U);
  EXPECT_EQ(blocks.add(kBase + kBlockBytes - 512, 1024), kBlockBytes) << "reaches into the next";
  EXPECT_EQ(blocks.remove(kBase, 512), 0U);
  EXPECT_EQ(blocks.remove(kBase + kBlockBytes - 512, 1024), kBlockBytes);
  EXPECT_EQ(blocks.remove(kBase + 512, 1000), kBlockBytes);
}

TEST(Blocks, ChargesTheWholeLastBlockOfALargeAllocation) {
  Blocks blocks;
  EXPECT_EQ(blocks.add(kBase, 3 * kBlockBytes + 1), 4 * kBlockBytes);
  EXPECT_EQ(blocks.add(kBase + 3 * kBlockBytes + 512, 512), 0U) << "in what is left of it";
  EXPECT_EQ(blocks.remove(kBase, 3 * kBlockBytes + 1), 3 * kBlockBytes);
  EXPECT_EQ(blocks.remove(kBase + 3 * kBlockBytes + 512, 512), kBlockBytes);
}

TEST(Blocks, AgreeWithACountOfEachBlock) {
  std::mt19937_64 random(5);
  Blocks blocks;
  std::map<std::uint64_t, int> counts;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
  std::uint64_t charged = 0;
  for (int i = 0; i < 20'000; ++i) {
    const bool is_new = held.empty() || random() % 2 != 0;
    if (is_new)
      held.emplace_back(kBase + random() % 40 * (kBlockBytes / 4),
                        1 + random() % (3 * kBlockBytes));
    const auto [address, bytes] = held[is_new ? held.size() - 1 : random() % held.size()];
    // Two allocations never overlap for whole blocks; in this test they may, so count edges apart.
    const std::uint64_t first = address / kBlockBytes;
    const std::uint64_t last = (address + bytes - 1) / kBlockBytes;
    const bool is_small = last == first;
    if (!is_small) {
      if (is_new) held.pop_back();
      continue;
    }
    if (is_new) {
      charged += blocks.add(address, bytes);
      ++counts[first];
      continue;
    }
    charged -= blocks.remove(address, bytes);
    if (--counts[first] == 0) counts.erase(first);
    held.erase(std::find(held.begin(), held.end(), std::pair{address, bytes}));
    ASSERT_EQ(charged, counts.size() * kBlockBytes);
  }
}

TEST(WholeBlocks, RoundUpAndDoNotOverflow) {
  EXPECT_EQ(whole_blocks(1), kBlockBytes);
  EXPECT_EQ(whole_blocks(kBlockBytes), kBlockBytes);
  EXPECT_GE(whole_blocks(~0ULL), ~0ULL - kBlockBytes);
}

TEST(AllocationTable, GiveBackWhatWasPutOnceAndByContext) {
  AllocationTable sizes;
  auto* const first = reinterpret_cast<CUcontext>(0x10);
  auto* const second = reinterpret_cast<CUcontext>(0x20);
  for (std::uint64_t i = 1; i <= 100; ++i)
    sizes.put({.address = i << 9, .bytes = i, .context = i % 2 != 0 ? first : second});
  EXPECT_EQ(sizes.extract(7 << 9)->bytes, 7U);
  EXPECT_FALSE(sizes.extract(7 << 9));
  EXPECT_FALSE(sizes.extract(12345));
  EXPECT_EQ(sizes.extract_of(first).size(), 49U);
  EXPECT_TRUE(sizes.extract_of(first).empty());
  EXPECT_EQ(sizes.extract_of(second).size(), 50U);
}

}  // namespace
}  // namespace regatta::sharing::hook
