#include "regatta/runtime/comm/internal/transport/spread_ports.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::comm {
namespace {

// Candidates as switches would hash them: `spines` paths at the leaf, `supers` at each spine.
std::vector<TracedPort> hashed(std::mt19937& random, std::size_t count, unsigned spines,
                               unsigned supers) {
  std::vector<TracedPort> candidates;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned spine = static_cast<unsigned>(random()) % spines;
    const unsigned super = static_cast<unsigned>(random()) % supers;
    candidates.push_back(
        {static_cast<std::uint16_t>(40000 + i),
         {"spine" + std::to_string(spine),
          "super" + std::to_string(spine) + "." + std::to_string(super), "leaf1"}});
  }
  return candidates;
}

int largest(const std::vector<TracedPort>& candidates, const std::vector<std::size_t>& chosen,
            std::size_t hop) {
  std::map<std::string, int> load;
  int most = 0;
  for (const std::size_t i : chosen)
    most = std::max(most, ++load[candidates[i].routers[hop]]);
  return most;
}

TEST(SpreadPorts, LoadsEveryWayAlikeAtEveryTier) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const auto candidates = hashed(random, 128, 2, 2);
    auto chosen = spread_ports(candidates, 1, 7);
    ASSERT_EQ(chosen.size(), 7U);
    chosen.push_back(0);  // the one in use
    EXPECT_EQ(largest(candidates, chosen, 0), 4);
    EXPECT_EQ(largest(candidates, chosen, 1), 2);
    std::sort(chosen.begin(), chosen.end());
    EXPECT_EQ(std::adjacent_find(chosen.begin(), chosen.end()), chosen.end());
  }
}

TEST(SpreadPorts, TakesTheBestOfUnevenCandidates) {
  const std::vector<TracedPort> candidates{
      {1, {"a"}}, {2, {"a"}}, {3, {"a"}}, {4, {"b"}}, {5, {"a"}}};
  EXPECT_EQ(spread_ports(candidates, 1, 3), (std::vector<std::size_t>{3, 1, 2}));
}

TEST(SpreadPorts, GivesWhatThereIs) {
  EXPECT_TRUE(spread_ports({}, 0, 3).empty());
  const std::vector<TracedPort> candidates{{1, {}}, {2, {""}}, {3, {}}};
  EXPECT_EQ(spread_ports(candidates, 1, 9).size(), 2U);
}

}  // namespace
}  // namespace regatta::comm
