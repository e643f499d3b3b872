#include <gmock/gmock.h>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/test_fabric.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

using testing::DoubleNear;

constexpr BytesPerSecond kRate{50e9};
constexpr double kHop = 1e-6;

template <typename Add>
double end_of(TestFabric& fabric, Add&& add) {
  FlowGraph traffic;
  add(traffic, [&](std::uint32_t from, std::uint32_t to) { return fabric.path(from, to); });
  const auto report = simulate_flows(fabric.links, fabric.paths, traffic);
  EXPECT_TRUE(report);
  return report ? report->end.value : 0;
}

// Each NIC sends and receives bytes (n - 1) / n; by the destination, no link of a spine has more.
TEST(CollectiveTraffic, OfAnAllToAllTakesAsLongAsANicNeeds) {
  TestFabric fabric(64, 8, kRate);
  const double end = end_of(fabric, [](FlowGraph& traffic, auto path) {
    add_all_to_all(traffic, 64, {64LL << 20}, path);
  });
  EXPECT_THAT(end, DoubleNear(63.0 / 64 * 67108864 / 50e9 + 4 * kHop, 1e-12));
}

// The slowest chain: every chunk goes once around, over leaves and within them, and most of a
// second time.
TEST(CollectiveTraffic, OfARingTakesItsStepsAndTheLatencyOfTheWays) {
  TestFabric fabric(64, 8, kRate);
  const double end = end_of(fabric, [](FlowGraph& traffic, auto path) {
    add_ring_all_reduce(traffic, 64, {64LL << 20}, path);
  });
  const double chunks = 126 * (1 << 20) / kRate.value;
  EXPECT_GE(end, chunks + 126 * 2 * kHop);
  EXPECT_LE(end, chunks + 126 * 4 * kHop);
  // 15 or 16 of the 126 hops go over a spine.
  EXPECT_THAT(end, DoubleNear(chunks + (110 * 2 + 16 * 4) * kHop, 1e-12));
}

TEST(CollectiveTraffic, OfHalvingAndDoublingTakesWhatItsHalvesTake) {
  TestFabric fabric(64, 8, kRate);
  const double end = end_of(fabric, [](FlowGraph& traffic, auto path) {
    add_halving_doubling(traffic, 64, {64LL << 20}, path);
  });
  // Three exchanges over a spine and three below a leaf, and the same back.
  const double bytes = 2 * 63.0 / 64 * 67108864;
  EXPECT_THAT(end, DoubleNear(bytes / 50e9 + 2 * (3 * 4 + 3 * 2) * kHop, 1e-12));
}

}  // namespace
}  // namespace regatta::fabric
