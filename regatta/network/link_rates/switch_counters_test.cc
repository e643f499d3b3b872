#include "regatta/network/link_rates/switch_counters.h"

#include <gtest/gtest.h>

#include "regatta/network/link_rates/test_rates.h"

namespace regatta::link_rates {
namespace {

std::optional<SwitchPortCounters> counters_in(const std::string& line) {
  const auto read = parse_switch_line(line, "counters.csv", 2);
  EXPECT_TRUE(read) << read.error().message;
  const auto* const counters = read ? std::get_if<SwitchPortCounters>(&*read) : nullptr;
  return counters != nullptr ? std::optional(*counters) : std::nullopt;
}

TEST(ParseSwitchLine, ReadsEveryFieldAndLeavesUnknownOnesEmpty) {
  const auto all = counters_in("12.5,leaf0,leaf0-spine1,1e8,1,2,3,4,5,6,7,8,9,10,0");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->at.value, 12.5);
  EXPECT_EQ(all->rate->value, 1.25e7);
  EXPECT_EQ(*all->in.bytes + *all->in.packets + *all->in.drops + *all->in.errors, 10U);
  EXPECT_EQ(*all->out.bytes + *all->out.packets + *all->out.drops + *all->out.errors, 26U);
  EXPECT_EQ(*all->queued, 9U);
  EXPECT_EQ(*all->rx_pauses, 10U);
  EXPECT_EQ(all->is_up, false);
  const auto few = counters_in("0,leaf0,leaf0-spine1,,,,,,,,,,,,");
  ASSERT_TRUE(few);
  EXPECT_FALSE(few->rate || few->in.bytes || few->out.errors || few->queued || few->is_up);
}

TEST(ParseSwitchLine, ReadsLinesThatLackTheLastField) {
  const auto reading = counters_in("0,leaf0,leaf0-spine1,,,,,,,,,,,10\r");
  ASSERT_TRUE(reading);
  EXPECT_EQ(*reading->rx_pauses, 10U);
  EXPECT_FALSE(reading->is_up);
}

TEST(ParseSwitchLine, ReadsNeighbors) {
  const auto read =
      parse_switch_line("neighbor,12.5,leaf0,leaf0-spine1,spine1,leaf0-spine1", "c.csv", 2);
  ASSERT_TRUE(read);
  const auto* const neighbor = std::get_if<SwitchNeighbor>(&*read);
  ASSERT_NE(neighbor, nullptr);
  EXPECT_EQ(neighbor->at.value, 12.5);
  EXPECT_EQ(neighbor->device + " " + neighbor->port, "leaf0 leaf0-spine1");
  EXPECT_EQ(neighbor->neighbor + " " + neighbor->neighbor_port, "spine1 leaf0-spine1");
}

TEST(ParseSwitchLine, FindsNothingInHeadingsAndComments) {
  for (const std::string_view line : {std::string_view(), std::string_view("# by gnmic"),
                                      kSwitchCountersHeading, kSwitchCountersShortHeading}) {
    const auto read = parse_switch_line(line, "c.csv", 1);
    ASSERT_TRUE(read);
    EXPECT_TRUE(std::holds_alternative<std::monostate>(*read)) << line;
  }
}

TEST(ParseSwitchLine, NamesFileLineAndRemedy) {
  const struct {
    std::string line;
    std::string says;
  } cases[] = {
      {"1,leaf0", "2 fields; write the 15"},
      {"1,leaf0,p,,,,,,,,,,,,,", "16 fields; write the 15"},
      {"1,leaf0,p,,,,,,,,,,,,UP", "up is neither 0 nor 1"},
      {"neighbor,1,leaf0,p,spine0,", "the neighbor or its port is empty"},
      {"neighbor,1,leaf0,p,spine0", "a line of a neighbor has 6 fields"},
      {"neighbor,1,leaf0,p,spine0,q,r", "a line of a neighbor has 6 fields"},
      {"neighbor,x,leaf0,p,spine0,q", "at_s is no number"},
      {"neighbors,1,leaf0,p,spine0,q", "6 fields; write the 15"},
      {"x,leaf0,p,,,,,,,,,,,", "at_s is no number"},
      {"nan,leaf0,p,,,,,,,,,,,", "at_s is no number"},
      {"1,,p,,,,,,,,,,,", "name both"},
      {"1,leaf0,p,fast,,,,,,,,,,", "rate_bps is no rate"},
      {"1,leaf0,p,-1,,,,,,,,,,", "rate_bps is no rate"},
      {"1,leaf0,p,,-1,,,,,,,,,", "field 5 is no whole number"},
      {"1,leaf0,p,,,,,,,,,,,1.5", "field 14 is no whole number"},
      {"1,leaf0," + std::string(2000, 'p') + ",,,,,,,,,,,", "longer than 1024"},
  };
  for (const auto& one : cases) {
    const auto read = parse_switch_line(one.line, "counters.csv", 7);
    ASSERT_FALSE(read) << one.line;
    EXPECT_TRUE(read.error().message.starts_with("counters.csv:7: ")) << read.error().message;
    EXPECT_NE(read.error().message.find(one.says), std::string::npos) << read.error().message;
  }
}

class SwitchCounterTotalsTest : public testing::Test {
 protected:
  SwitchPortCounters reading(double at, std::uint64_t out_bytes) const {
    return {.at = {at},
            .device = "leaf0",
            .port = "leaf0-spine1",
            .in = {},
            .out = {.bytes = out_bytes}};
  }
  const Fabric fabric_{{.servers = 4, .servers_per_leaf = 2, .spines = 2}};
  const std::uint32_t up_ = link_called(fabric_.graph, "leaf0-spine1", "leaf0");
  SwitchCounterTotals totals_{fabric_.graph};
};

TEST_F(SwitchCounterTotalsTest, CountsFromTheFirstReading) {
  auto first = reading(10, 5'000'000);
  first.out.drops = 100;
  first.in.errors = 7;
  auto second = reading(12, 6'000'000);
  second.out.drops = 130;
  second.in.errors = 9;
  ASSERT_TRUE(totals_.add(first));
  ASSERT_TRUE(totals_.add(second));
  const LinkCounterTotals& up = totals_.of(up_);
  EXPECT_EQ(up.time.value, 2);
  EXPECT_EQ(up.peak.value, 500'000);
  EXPECT_EQ(up.drops, 30U);
  EXPECT_FALSE(up.errors);
  EXPECT_EQ(totals_.of(up_ ^ 1U).errors, 2U);  // of what arrives at the port
  EXPECT_EQ(totals_.ports(), 1U);
}

TEST_F(SwitchCounterTotalsTest, ReadsCountersThatStartAnew) {
  ASSERT_TRUE(totals_.add(reading(1, 9'000'000)));
  ASSERT_TRUE(totals_.add(reading(2, 1'000)));
  EXPECT_EQ(totals_.of(up_).peak.value, 1'000);
}

TEST_F(SwitchCounterTotalsTest, NotesHowFastALinkIsWhilePacketsWait) {
  for (int i = 0; i < 4; ++i) {
    auto one = reading(i, static_cast<std::uint64_t>(i) * 300'000);
    one.queued = i == 0 ? 0 : 40'000;
    one.rx_pauses = i < 3 ? 5 : 9;
    ASSERT_TRUE(totals_.add(one));
  }
  EXPECT_EQ(totals_.of(up_).waiting_peak.value, 300'000);
  EXPECT_EQ(totals_.of(up_).waiting_intervals, 2);
  EXPECT_EQ(totals_.of(up_).paused_intervals, 1);
}

TEST_F(SwitchCounterTotalsTest, RefusesPortsThatAreNotThereAndTimesThatGoBack) {
  auto one = reading(1, 0);
  one.device = "leaf9";
  EXPECT_NE(totals_.add(one).error().message.find("device leaf9: is not in the cluster"),
            std::string::npos);
  one = reading(1, 0);
  one.port = "leaf1-spine1";
  EXPECT_NE(totals_.add(one).error().message.find("name the port by its link, like"),
            std::string::npos);
  ASSERT_TRUE(totals_.add(reading(1, 0)));
  EXPECT_FALSE(totals_.add(reading(1, 0)));
}

}  // namespace
}  // namespace regatta::link_rates
