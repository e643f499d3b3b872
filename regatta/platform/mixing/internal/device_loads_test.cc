#include "regatta/platform/mixing/internal/device_loads.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <gtest/gtest.h>

#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr LoadCosts kCosts{0.15F, 5, 0, Bytes{10}};

std::vector<LoadSamples> random_loads(std::size_t count, std::uint64_t seed) {
  packing::RandomSequence random(seed);
  std::vector<LoadSamples> loads(count);
  for (LoadSamples& load : loads) {
    load.has_target = random.uniform() < 0.7;
    load.memory = Bytes{static_cast<long long>(1 + random.below(5))};
    for (int i = 0; i < 24; ++i)
      load.demand.push_back(random.uniform() < 0.6 ? 0 : static_cast<float>(random.uniform()));
  }
  return loads;
}

// The cost of an assignment, added up from its definition; nothing where memory does not suffice.
std::optional<double> cost_of(const std::vector<LoadSamples>& loads, const std::vector<int>& homes,
                              const LoadCosts& costs) {
  double total = 0;
  for (int device = 0; device < static_cast<int>(loads.size()); ++device) {
    std::vector<const LoadSamples*> members;
    Bytes memory{};
    int targets = 0;
    for (std::size_t i = 0; i < loads.size(); ++i) {
      if (homes[i] != device) continue;
      members.push_back(&loads[i]);
      memory += loads[i].memory;
      targets += loads[i].has_target ? 1 : 0;
    }
    if (members.empty()) continue;
    if (memory > costs.memory) return std::nullopt;
    total += 1;
    const std::size_t samples = loads[0].demand.size();
    for (std::size_t s = 0; s < samples; ++s) {
      double sum = 0;
      for (const LoadSamples* load : members)
        sum += load->demand[s];
      double needed = 0;
      double needed_by_targets = 0;
      for (const LoadSamples* load : members) {
        const double own = load->demand[s];
        // Occupancy is at most the whole device, and a workload does not disturb itself.
        const double need = own * (1 + costs.interference * (std::min(sum, 1.0) - own));
        needed += need;
        if (load->has_target) needed_by_targets += need;
      }
      const auto share = 1 / static_cast<double>(samples);
      total += std::max(0.0, needed - 1) * share;
      if (needed_by_targets > 1.00001) total += costs.missed_price * targets * share;
    }
  }
  return total;
}

double least_cost(const std::vector<LoadSamples>& loads, std::vector<int>& homes, std::size_t next,
                  int devices, const LoadCosts& costs) {
  if (next == loads.size()) return cost_of(loads, homes, costs).value_or(1e300);
  double least = 1e300;
  for (int device = 0; device <= devices; ++device) {
    homes[next] = device;
    least =
        std::min(least, least_cost(loads, homes, next + 1, std::max(devices, device + 1), costs));
  }
  return least;
}

TEST(DeviceLoads, IsCloseToTheLeastCostOfRandomWorkloads) {
  double sum = 0;
  double least_sum = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<LoadSamples> loads = random_loads(7, seed);
    DeviceLoads devices(loads, std::vector<int>(7, -1), kCosts);
    devices.improve(10, 60, seed);
    const auto cost = cost_of(loads, devices.homes(), kCosts);
    ASSERT_TRUE(cost) << "more memory than a device has";
    std::vector<int> homes(7);
    const double least = least_cost(loads, homes, 0, 0, kCosts);
    EXPECT_GE(*cost, least - 1e-4);
    EXPECT_LE(*cost, 1.35 * least);
    sum += *cost;
    least_sum += least;
  }
  EXPECT_LE(sum, 1.05 * least_sum);
}

TEST(DeviceLoads, WorkloadsThatMeetAreApartAndThoseThatAlternateAreTogether) {
  std::vector<LoadSamples> loads(4);
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t s = 0; s < 20; ++s)
      loads[i].demand.push_back(s % 2 == i % 2 ? 0.9F : 0.0F);
  DeviceLoads devices(loads, std::vector<int>(4, -1), kCosts);
  devices.improve(10, 50, 1);
  EXPECT_EQ(devices.devices_in_use(), 2);
  EXPECT_EQ(devices.missed_share(), 0);
  EXPECT_NE(devices.homes()[0], devices.homes()[2]);
}

TEST(DeviceLoads, AWorkloadThatMayWaitSharesWithOneThatMayNot) {
  std::vector<LoadSamples> loads(2);
  loads[0].demand.assign(20, 0.5F);
  loads[1].demand.assign(20, 0.0F);
  loads[1].demand[3] = 1;
  DeviceLoads apart(loads, std::vector<int>(2, -1), {0, 50, 0, Bytes{10}});
  apart.improve(5, 0, 1);
  EXPECT_EQ(apart.devices_in_use(), 2);
  loads[1].has_target = false;
  DeviceLoads together(loads, std::vector<int>(2, -1), {0, 50, 0, Bytes{10}});
  together.improve(5, 0, 1);
  EXPECT_EQ(together.devices_in_use(), 1);
}

TEST(DeviceLoads, IndependentWorkloadsMeetAsOftenAsChanceHasIt) {
  // Both are busy in the same tenth of the samples: together in a hundredth of the time.
  std::vector<LoadSamples> loads(2, {std::vector<float>(20, 0.0F), true, Bytes{1}});
  for (LoadSamples& load : loads)
    load.demand[3] = load.demand[7] = 0.9F;
  LoadCosts costs{0.15F, 90, 0, Bytes{10}, true};
  DeviceLoads together(loads, std::vector<int>(2, -1), costs);
  together.improve(5, 5, 1);
  EXPECT_EQ(together.devices_in_use(), 1);
  EXPECT_NEAR(together.missed_share(), 0.01, 1e-6);
  costs.missed_price = 110;
  DeviceLoads apart(loads, std::vector<int>(2, -1), costs);
  apart.improve(5, 5, 1);
  EXPECT_EQ(apart.devices_in_use(), 2);
}

TEST(DeviceLoads, NobodyMovesWhereTheMoveCostsMoreThanItSaves) {
  const std::vector<LoadSamples> loads(2, {std::vector<float>(10, 0.1F), true, Bytes{1}});
  const std::vector<int> homes = {0, 1};
  DeviceLoads staying(loads, homes, {0, 5, 1.5, Bytes{10}});
  staying.improve(5, 20, 1);
  EXPECT_EQ(staying.homes(), homes);
  DeviceLoads moving(loads, homes, {0, 5, 0.5, Bytes{10}});
  moving.improve(5, 20, 1);
  EXPECT_EQ(moving.devices_in_use(), 1);
}

}  // namespace
}  // namespace regatta::mixing
