#include "regatta/network/link_rates/counter_verdict.h"

#include <gtest/gtest.h>

#include "regatta/network/link_rates/test_rates.h"

namespace regatta::link_rates {
namespace {

// Ports that carry `rate` for five seconds, and what the test changes of the readings.
class CounterFaults : public testing::Test {
 protected:
  template <typename Change>
  std::vector<CounterFault> find(double rate, Change&& change) {
    SwitchCounterTotals totals(fabric_.graph);
    for (int second = 0; second <= 5; ++second) {
      const auto bytes = static_cast<std::uint64_t>(rate * second);
      SwitchPortCounters reading{
          .at = {static_cast<double>(second)},
          .device = "leaf0",
          .port = "leaf0-spine1",
          .in = {.bytes = bytes, .packets = bytes / 1000, .drops = 0, .errors = 0},
          .out = {.bytes = bytes, .packets = bytes / 1000, .drops = 0, .errors = 0},
          .queued = 0};
      change(reading, second);
      EXPECT_TRUE(totals.add(reading));
    }
    totals_ = totals.of(up_);
    return find_counter_faults(fabric_.graph, totals);
  }
  const Fabric fabric_{{.servers = 4, .servers_per_leaf = 2, .spines = 2}};  // 1 GB/s
  const std::uint32_t up_ = link_called(fabric_.graph, "leaf0-spine1", "leaf0");
  LinkCounterTotals totals_;
};

TEST_F(CounterFaults, NamesNoLinkThatIsIdleOrFull) {
  for (const double rate : {0.0, 3e8, 9.9e8})
    EXPECT_TRUE(find(rate, [](auto&, int) {}).empty());
  // A full link at its rate may have a queue and drop packets.
  EXPECT_TRUE(find(9.9e8, [](SwitchPortCounters& reading, int second) {
                reading.queued = 50'000;
                reading.out.drops = static_cast<std::uint64_t>(second) * 1000;
              }).empty());
}

TEST_F(CounterFaults, NamesAPortThatHasNegotiatedLess) {
  const auto faults =
      find(0, [](SwitchPortCounters& reading, int) { reading.rate = BytesPerSecond{2.5e8}; });
  ASSERT_EQ(faults.size(), 2U);  // both directions
  EXPECT_EQ(faults[0].kind, CounterFaultKind::kPortRate);
  EXPECT_EQ(faults[0].measured.value, 2.5e8);
}

TEST_F(CounterFaults, NamesTheDirectionWhosePacketsArriveBroken) {
  const auto faults = find(1e6, [](SwitchPortCounters& reading, int second) {
    reading.in.errors = static_cast<std::uint64_t>(second);
  });
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].link, up_ ^ 1U);
  EXPECT_EQ(faults[0].kind, CounterFaultKind::kErrors);
}

TEST_F(CounterFaults, NamesALinkOnWhichPacketsWaitBelowItsRate) {
  const auto slow = [](SwitchPortCounters& reading, int) { reading.queued = 50'000; };
  auto faults = find(3.3e8, slow);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].link, up_);
  EXPECT_EQ(faults[0].kind, CounterFaultKind::kSlow);
  EXPECT_NEAR(faults[0].measured.value, 3.3e8, 1);
  faults = find(3.3e8, [&](SwitchPortCounters& reading, int second) {
    slow(reading, second);
    reading.rx_pauses = static_cast<std::uint64_t>(second);
  });
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].kind, CounterFaultKind::kPaused);
}

TEST_F(CounterFaults, CallsDropsBelowTheRateDropsOnly) {
  const auto faults = find(3.3e8, [](SwitchPortCounters& reading, int second) {
    reading.out.drops = static_cast<std::uint64_t>(second) * 100;
    reading.queued = {};
  });
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].kind, CounterFaultKind::kDrops);
  EXPECT_NEAR(faults[0].share, 100.0 / (3.3e5 + 100), 1e-6);
}

TEST_F(CounterFaults, EveryKindHasAnotherCauseAndATest) {
  for (int kind = 0; kind < 5; ++kind) {
    EXPECT_FALSE(other_causes(static_cast<CounterFaultKind>(kind)).empty());
    EXPECT_FALSE(separating_test(static_cast<CounterFaultKind>(kind)).empty());
    EXPECT_FALSE(to_string(static_cast<CounterFaultKind>(kind)).empty());
  }
}

TEST_F(CounterFaults, SupportOrContradictAVerdictOfProbes) {
  const BytesPerSecond described{1e9};
  find(3e8, [](auto&, int) {});
  EXPECT_EQ(support_of_slow_link(totals_, {3e8}, described), CounterSupport::kNone);
  EXPECT_EQ(support_of_slow_link(totals_, {1e8}, described), CounterSupport::kWeakens);
  EXPECT_EQ(support_of_loss(totals_), CounterSupport::kWeakens);
  find(3e8, [](SwitchPortCounters& reading, int second) {
    reading.out.drops = static_cast<std::uint64_t>(second);
  });
  EXPECT_EQ(support_of_slow_link(totals_, {3e8}, described), CounterSupport::kStrengthens);
  EXPECT_EQ(support_of_loss(totals_), CounterSupport::kStrengthens);
  find(0, [](SwitchPortCounters& reading, int) { reading.rate = BytesPerSecond{1e8}; });
  EXPECT_EQ(support_of_slow_link(totals_, {1e8}, described), CounterSupport::kStrengthens);
  EXPECT_EQ(support_of_loss(totals_), CounterSupport::kNone);  // no packets
  EXPECT_EQ(support_of_loss(LinkCounterTotals{}), CounterSupport::kNone);
}

}  // namespace
}  // namespace regatta::link_rates
