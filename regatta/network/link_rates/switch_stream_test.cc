#include "regatta/network/link_rates/switch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/link_rates/test_rates.h"

namespace regatta::link_rates {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class SwitchStreamTest : public testing::Test {
 protected:
  std::uint32_t port(const std::string& device, const std::string& name) const {
    return link_called(fabric_.graph, name, device);
  }
  void add(const std::string& line) { stream_.add(line, Seconds{5}); }

  const Fabric fabric_{{.servers = 4, .servers_per_leaf = 2, .spines = 2}};
  SwitchStream stream_{fabric_.graph, "counters.csv"};
};

TEST_F(SwitchStreamTest, GivesReadingsByTheTimeAtWhichTheyCame) {
  add(std::string(kSwitchCountersHeading));
  add("100,leaf0,leaf0-spine1,,,20,3,4,,,5,6,,,1");
  const SwitchStreamNews news = stream_.consume_news();
  ASSERT_THAT(news.readings, SizeIs(1));
  const diag::PortReading& reading = news.readings[0];
  EXPECT_EQ(reading.port, port("leaf0", "leaf0-spine1"));
  EXPECT_EQ(reading.at.value, 5);
  EXPECT_EQ(reading.in_packets, 20U);
  EXPECT_EQ(*reading.in_drops + *reading.in_errors + *reading.out_drops + *reading.out_errors, 18U);
  EXPECT_THAT(stream_.consume_news().readings, IsEmpty());
  EXPECT_THAT(stream_.consume_problems(), IsEmpty());
  EXPECT_EQ(stream_.lines(), 1U);
}

TEST_F(SwitchStreamTest, GivesWhatPortsHear) {
  add("neighbor,1,leaf0,leaf0-spine0,spine0,leaf1-spine0");
  const SwitchStreamNews news = stream_.consume_news();
  ASSERT_THAT(news.heard, SizeIs(1));
  EXPECT_EQ(news.heard[0].port, port("leaf0", "leaf0-spine0"));
  EXPECT_EQ(news.heard[0].heard, port("spine0", "leaf1-spine0"));
}

TEST_F(SwitchStreamTest, TakesACableAsDownWhileEitherEndIs) {
  const auto states = [&](const std::string& device, const std::string& up) {
    add("1," + device + ",leaf0-spine1,,,,,,,,,,,," + up);
    std::string text;
    for (const diag::CarrierEvent& event : stream_.consume_news().carriers)
      text += event.up ? "up" : "down";
    return text;
  };
  EXPECT_EQ(states("leaf0", "1"), "");
  EXPECT_EQ(states("leaf0", "0"), "down");
  EXPECT_EQ(states("spine1", "0"), "");
  EXPECT_EQ(states("leaf0", "1"), "");
  EXPECT_EQ(states("leaf0", ""), "") << "it does not say";
  EXPECT_EQ(states("spine1", "1"), "up");
}

TEST_F(SwitchStreamTest, NamesEachProblemOnceAndCountsItsLines) {
  for (int i = 0; i < 3; ++i) {
    add("1,leaf9,leaf0-spine1,,,,,,,,,,,");
    add("1,leaf0,Ethernet5,,,,,,,,,,,");
    add("no line");
    add("neighbor,1,leaf0,leaf0-spine1,tor7,Ethernet5");
  }
  EXPECT_THAT(
      stream_.consume_problems(),
      ElementsAre("counters.csv:1: device leaf9: is not in the cluster; name a switch or server of "
                  "it, like spine1",
                  HasSubstr("counters.csv:2: port Ethernet5: leaf0 has no such link; name the port "
                            "by its link, like "),
                  HasSubstr("counters.csv:3: 1 fields; write the 15"),
                  HasSubstr("counters.csv:4: neighbor of leaf0 at leaf0-spine1: device tor7: is "
                            "not in the cluster")));
  EXPECT_EQ(stream_.lines(), 12U);
  EXPECT_EQ(stream_.left_out(), 12U);
  EXPECT_THAT(stream_.consume_news().readings, IsEmpty());
}

TEST_F(SwitchStreamTest, HoldsAFewOfManyProblems) {
  for (int i = 0; i < 1000; ++i)
    add("1,tor" + std::to_string(i) + ",p,,,,,,,,,,,");
  const auto problems = stream_.consume_problems();
  EXPECT_THAT(problems, SizeIs(33));
  EXPECT_EQ(problems.back(), "counters.csv: has more such lines; they are left out and counted");
  EXPECT_EQ(stream_.left_out(), 1000U);
}

}  // namespace
}  // namespace regatta::link_rates
