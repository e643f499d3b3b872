#include "regatta/network/link_rates/internal/train_messages.h"

#include <gtest/gtest.h>

namespace regatta::link_rates {
namespace {

std::string without_end(const std::string& line) {
  EXPECT_TRUE(line.ends_with('\n'));
  return line.substr(0, line.size() - 1);
}

TEST(AgentOrder, IsReadAsWritten) {
  const AgentOrder train = TrainOrder{
      .is_sender = true,
      .train = 0xfedc000000000001,
      .flow = {.from = 0x0a400000, .to = 0x0a400004, .from_port = 27951, .to_port = 27950},
      .shape = {.packets = 42, .packet_bytes = 1472, .time_to_live = 2}};
  const AgentOrder trace = PathOrder{
      .number = 3,
      .flow = {.from = 0x0a400000, .to = 0x0a400004, .from_port = 27951, .to_port = 27950},
      .routers = 3};
  for (const AgentOrder& order : {train, trace, AgentOrder(LoadOrder{{0x0a400000, 0x0a400002}})}) {
    const auto read = parse_agent_order(without_end(order_line(order)));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(order_line(*read), order_line(order));
  }
}

TEST(AgentReport, IsReadAsWritten) {
  for (const AgentReport& report :
       {AgentReport(TrainAwaited{7}), AgentReport(TrainSent{8, {1.25e9}}),
        AgentReport(TrainReceived{9, 41, {1.2e7}}),
        AgentReport(PathTraced{4, {0x0a400001, 0, 0x0a400003}}),
        AgentReport(TrainFailed{10, "10.64.0.0 is no address of this machine"}),
        AgentReport(LoadReport{{{0x0a400000, 5, 6}, {0x0a400002, 7, ~std::uint64_t{0}}}})}) {
    const std::string line = report_line(report);
    EXPECT_LE(line.size(), kAgentLineBytesMost);
    const auto read = parse_agent_report(without_end(line));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(report_line(*read), line);
  }
}

TEST(AgentReport, AsLongAsItCanBeFitsItsLine) {
  LoadReport report;
  for (std::size_t i = 0; i < kNicsMost; ++i)
    report.nics.push_back({0xffffffff, ~std::uint64_t{0}, ~std::uint64_t{0}});
  EXPECT_LE(report_line(report).size(), kAgentLineBytesMost);
}

TEST(AgentLines, RefuseWhatNoAgentSends) {
  for (const char* const line :
       {"", "x", "awaits", "awaits zz", "awaits 1 2", "sent 1 -5", "sent 1 99999999999999999999",
        "arrived 1 5000 3", "load 0a400000 1", "load 00000000 1 2"}) {
    EXPECT_FALSE(parse_agent_report(line)) << line;
  }
  for (const char* const line :
       {"", "send", "send 1 0a400000 27951 0a400004 27950 42 1472", "load 1 2 x",
        "send 1 0a400000 27951 0a400004 27950 9999 1472 2",
        "send 1 0a400000 27951 0a400004 27950 42 10 2",
        "send 1 0a400000 27951 0a400004 27950 42 1472 65",
        "trace 1 0a400000 27951 0a400004 27950 9", "trace 1 0a400000 27951 0a400004 27950",
        "expect 1 0a400000 0 0a400004 27950 42 1472 2"}) {
    EXPECT_FALSE(parse_agent_order(line)) << line;
  }
}

}  // namespace
}  // namespace regatta::link_rates
