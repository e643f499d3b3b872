#include "regatta/network/heal/internal/spread.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include <gmock/gmock.h>

namespace regatta::heal {
namespace {

using testing::ElementsAre;
using Hops = std::vector<std::uint32_t>;

std::map<std::uint32_t, double> shares(const std::vector<Part>& parts) {
  double total = 0;
  for (const Part& part : parts)
    total += part.weight;
  std::map<std::uint32_t, double> shares;
  for (const Part& part : parts)
    shares[part.hop] += part.weight / total;
  return shares;
}

Hops numbers(std::uint32_t count) {
  Hops hops(count);
  std::iota(hops.begin(), hops.end(), 10);
  return hops;
}

TEST(Spread, DividesTheRangeOfABrokenHopInPlace) {
  const Hops all = {1, 2, 3, 4};
  const Hops left = {1, 3, 4};
  EXPECT_THAT(respread(even_parts(all), all, left),
              ElementsAre(Part{1, 4}, Part{3, 1}, Part{4, 1}, Part{3, 3}, Part{4, 3}));
}

TEST(Spread, UsesOneHopWhenOneIsLeft) {
  const Hops all = {7, 8};
  EXPECT_THAT(respread(even_parts(all), all, Hops{8}), ElementsAre(Part{8, 1}));
}

TEST(Spread, IsEvenAgainWhenAllAreLeft) {
  const Hops all = {1, 2, 3, 4};
  const auto broken = respread(even_parts(all), all, Hops{1, 4});
  EXPECT_EQ(respread(broken, all, all), even_parts(all));
}

TEST(Spread, TakesPartsThatFitNoDivisionAsNobodys) {
  const Hops all = {1, 2, 3};
  const std::vector<Part> odd = {{9, 5}, {3, 7}};
  const auto parts = respread(odd, all, Hops{1, 2});
  EXPECT_EQ(moved_share(even_parts(all), parts, Hops{1, 2}), 0);
  EXPECT_NEAR(shares(parts)[1], 0.5, 1e-9);
}

TEST(Spread, MeasuresWhatMoves) {
  // Without the second of four, in ranges of equal size: the third one's range from 1/2 to 3/4 is
  // now from 1/3 to 2/3. Without the first one, two more boundaries move.
  const auto all = even_parts(Hops{1, 2, 3, 4});
  const Hops healthy = {1, 3, 4};
  EXPECT_NEAR(moved_share(all, even_parts(healthy), healthy), 1.0 / 12, 1e-9);
  const Hops last = {2, 3, 4};
  EXPECT_NEAR(moved_share(all, even_parts(last), last), 1.0 / 12 + 2.0 / 12, 1e-9);
}

TEST(Spread, MovesNoHealthyConnectionWhateverBreaksAndReturns) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const Hops all = numbers(2 + static_cast<std::uint32_t>(random() % 20));
    std::vector<Part> now = even_parts(all);
    Hops left = all;
    for (int step = 0; step < 12; ++step) {
      Hops next;
      for (const std::uint32_t hop : all)
        if (random() % 4 != 0) next.push_back(hop);
      if (next.empty()) next.push_back(all[random() % all.size()]);
      const auto after = respread(now, all, next);
      // Returned hops take back their own parts; a hop that stays loses nothing else, and nothing
      // of its own.
      Hops stays;
      std::ranges::set_intersection(left, next, std::back_inserter(stays));
      const bool returns = stays.size() < next.size();
      EXPECT_LE(moved_share(even_parts(all), after, next), 1e-9);
      if (!returns) {
        EXPECT_LE(moved_share(now, after, stays), 1e-9) << "try " << i;
      }
      for (const Part& part : after) {
        EXPECT_GE(part.weight, 1);
        EXPECT_LE(part.weight, kMaxWeight);
        EXPECT_TRUE(std::ranges::find(next, part.hop) != next.end());
      }
      now = after;
      left = next;
    }
    EXPECT_EQ(respread(now, all, all), even_parts(all));
  }
}

// Else a later fault of a hop with more than its share would hit more traffic than without healing.
TEST(Spread, IsEvenAlsoWhereAHopComesBackWhileAnotherIsMissing) {
  for (std::uint32_t count = 3; count <= 64; ++count) {
    const Hops all = numbers(count);
    const Hops less(all.begin() + 1, all.end());
    const Hops least(all.begin() + 2, all.end());
    const auto two_out = respread(respread(even_parts(all), all, less), all, least);
    Hops one_out = least;
    one_out.insert(one_out.begin(), all[0]);
    for (const auto& [hop, share] : shares(respread(two_out, all, one_out)))
      EXPECT_NEAR(share, 1.0 / (count - 1), 1e-9) << count;
  }
}

TEST(Spread, DividesEvenly) {
  for (std::uint32_t count = 2; count <= 64; ++count) {
    const Hops all = numbers(count);
    const Hops left(all.begin() + 1, all.end());
    const double fair = 1.0 / (count - 1);
    for (const auto& [hop, share] : shares(respread(even_parts(all), all, left)))
      EXPECT_NEAR(share, fair, 1e-9) << count;
    if (count < 3) continue;
    const Hops fewer(left.begin() + 1, left.end());
    const auto two = respread(respread(even_parts(all), all, left), all, fewer);
    for (const auto& [hop, share] : shares(two))
      EXPECT_NEAR(share, 1.0 / (count - 2), 1.0 / (count * (count - 1)) + 1e-9) << count;
  }
}

}  // namespace
}  // namespace regatta::heal
