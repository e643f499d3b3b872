#include <array>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "regatta/network/fabric/test_address.h"
#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

// Appendix A of the paper: key 00 to 0f, 15 bytes; here the next vector of its program, for 8 and 0
// bytes: whole words.
TEST(SipHash, IsThatOfThePaper) {
  constexpr std::uint64_t kKey0 = 0x0706050403020100;
  constexpr std::uint64_t kKey1 = 0x0f0e0d0c0b0a0908;
  EXPECT_EQ(siphash({}, kKey0, kKey1), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(siphash(std::array{kKey0}, kKey0, kKey1), 0x93f5f5799a932462U);
}

TEST(Ecmp, TakesTheHopsThatALinuxKernelTook) {
  std::ifstream file(std::string(REGATTA_TESTDATA) + "/ecmp_linux_6_18.txt");
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream in(line);
    int policy = 0;
    std::uint32_t seed = 0;
    std::size_t hops = 0;
    std::size_t hop = 0;
    std::string from;
    std::string to;
    FiveTuple flow;
    unsigned protocol = 0;
    ASSERT_TRUE(in >> policy >> seed >> hops >> from >> flow.from_port >> to >> flow.to_port >>
                protocol >> hop);
    flow.from = address(from);
    flow.to = address(to);
    flow.protocol = static_cast<std::uint8_t>(protocol);
    EXPECT_EQ(
        ecmp_choice(ecmp_hash(flow, seed, HashPolicy{static_cast<std::uint8_t>(policy)}), hops),
        hop)
        << line;
    ++rows;
  }
  EXPECT_EQ(rows, 96);
}

TEST(Ecmp, TakesTheSameWayBothWays) {
  const FiveTuple there{.from = 0x0a000001, .to = 0x0a000102, .from_port = 50000, .to_port = 4791};
  const FiveTuple back{.from = 0x0a000102, .to = 0x0a000001, .from_port = 4791, .to_port = 50000};
  for (const HashPolicy policy : {HashPolicy::kLayer4, HashPolicy::kFields}) {
    EXPECT_EQ(ecmp_hash(there, 7, policy), ecmp_hash(back, 7, policy));
    EXPECT_NE(ecmp_hash(there, 7, policy), ecmp_hash(there, 8, policy));
  }
}

TEST(Ecmp, GivesEachHopItsPartOfTheHashesInOrder) {
  for (std::size_t hops = 1; hops <= 130; ++hops) {
    EXPECT_EQ(ecmp_choice(0, hops), 0U);
    EXPECT_EQ(ecmp_choice(~0U, hops), hops - 1);
    for (std::size_t hop = 1; hop < hops; ++hop) {
      // Rounded to the nearest, as the kernel's DIV_ROUND_CLOSEST_ULL.
      const auto begin = static_cast<std::uint32_t>(((hop << 31U) + hops / 2) / hops);
      EXPECT_EQ(ecmp_choice(begin << 1U, hops), hop);
      EXPECT_EQ(ecmp_choice((begin << 1U) - 1, hops), hop - 1);
    }
  }
}

TEST(Ecmp, GivesEqualWeightsEqualParts) {
  std::mt19937 random(5);
  for (std::size_t hops = 1; hops <= 40; ++hops) {
    const std::vector<int> weights(hops, 1 + static_cast<int>(hops % 7));
    for (int i = 0; i < 200; ++i) {
      const auto hash = static_cast<std::uint32_t>(random());
      EXPECT_EQ(ecmp_choice(hash, weights), ecmp_choice(hash, hops));
    }
  }
}

TEST(Ecmp, GivesEachHopAPartAsLargeAsItsWeight) {
  constexpr std::array kWeights = {3, 1, 1, 1, 3, 3};
  std::array<int, 6> taken{};
  for (std::uint32_t step = 0; step < 12; ++step)
    ++taken[ecmp_choice(step * 0x15555555U + 0x01000000U, kWeights)];
  EXPECT_EQ(taken, kWeights);
}

// Four equal hops; the second one goes, and its part is divided among the others where it was: what
// the others had before they keep.
TEST(Ecmp, LeavesTheOtherHopsAloneWhenOnesPartIsDividedInPlace) {
  constexpr std::array kWeights = {3, 1, 1, 1, 3, 3};
  constexpr std::array<std::size_t, 6> kHop = {0, 0, 2, 3, 2, 3};
  std::mt19937 random(6);
  for (int i = 0; i < 10'000; ++i) {
    const auto hash = static_cast<std::uint32_t>(random());
    const std::size_t before = ecmp_choice(hash, 4);
    if (before != 1) {
      EXPECT_EQ(kHop[ecmp_choice(hash, kWeights)], before);
    } else {
      EXPECT_NE(kHop[ecmp_choice(hash, kWeights)], 1U);
    }
  }
}

// Switches with one seed choose alike, so that of a second tier's links only some are used.
TEST(Ecmp, PolarizesWhereTiersHaveTheSameSeed) {
  std::array<std::array<int, 2>, 2> same{};
  std::array<std::array<int, 2>, 2> other{};
  for (std::uint16_t port = 0; port < 512; ++port) {
    const FiveTuple flow{.from = 1, .to = 2, .from_port = port, .to_port = 4791};
    const std::size_t first = ecmp_choice(ecmp_hash(flow, 3, HashPolicy::kFields), 2);
    ++same[first][ecmp_choice(ecmp_hash(flow, 3, HashPolicy::kFields), 2)];
    ++other[first][ecmp_choice(ecmp_hash(flow, 4, HashPolicy::kFields), 2)];
  }
  EXPECT_EQ(same[0][1] + same[1][0], 0);
  for (const auto& tier : other)
    for (const int flows : tier)
      EXPECT_NEAR(flows, 128, 40);
}

TEST(Ecmp, ChoosesAtEachSwitchOfAWay) {
  const TestFabric fabric(64, 8, {1e9});
  std::vector<std::uint32_t> seeds;
  for (std::size_t node = 0; node < fabric.graph.nodes.size(); ++node)
    seeds.push_back(static_cast<std::uint32_t>(node + 1));
  std::vector<int> flows(fabric.links.capacity.size(), 0);
  for (std::uint16_t port = 0; port < 800; ++port) {
    const FiveTuple flow{.from = 0x0a000001, .to = 0x0a000209, .from_port = port, .to_port = 4791};
    const auto path = fabric.routes.path(fabric.nics[0], fabric.nics[63], EcmpNextHop{flow, seeds});
    ASSERT_TRUE(path);
    for (const std::uint32_t link : *path)
      ++flows[link];
  }
  EXPECT_EQ(flows[number_of({fabric.nics[0], true})], 800);
  int used = 0;
  for (const int count : flows) {
    if (count == 0 || count == 800) continue;
    ++used;
    EXPECT_NEAR(count, 100, 40);
  }
  EXPECT_EQ(used, 16);  // eight up, eight down
}

}  // namespace
}  // namespace regatta::fabric
