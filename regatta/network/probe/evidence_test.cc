#include "regatta/network/probe/evidence.h"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace regatta::probe {
namespace {

std::string without_end(const std::string& line) {
  EXPECT_TRUE(line.ends_with("\n"));
  return line.substr(0, line.size() - 1);
}

TEST(Evidence, ComesBackFromItsLineAsItWas) {
  const Trace trace{
      .window = 77, .path = 9, .hops = {{4, 4, 0x0a400001}, {4, 3, 0x0a400021}, {4, 0, 0}}};
  const auto traced = parse_evidence(without_end(evidence_line(trace)));
  ASSERT_TRUE(traced);
  const auto& its = std::get<Trace>(*traced);
  EXPECT_EQ(its.window, 77);
  EXPECT_EQ(its.path, 9U);
  ASSERT_EQ(its.hops.size(), 3U);
  EXPECT_EQ(its.hops[1].answered, 3);
  EXPECT_EQ(its.hops[1].router, 0x0a400021U);

  const FlowCounts counts{.window = 5, .flows = {{{1, 2, 3, 4, 6}, 100, 7}}};
  const auto counted = parse_evidence(without_end(evidence_line(counts)));
  ASSERT_TRUE(counted);
  const auto& flows = std::get<FlowCounts>(*counted).flows;
  ASSERT_EQ(flows.size(), 1U);
  EXPECT_EQ(flows[0].flow, (fabric::FiveTuple{1, 2, 3, 4, 6}));
  EXPECT_EQ(flows[0].segments, 100U);
  EXPECT_EQ(flows[0].again, 7U);

  const auto nic = parse_evidence(without_end(evidence_line(NicCarrier{0x0a400004, true})));
  ASSERT_TRUE(nic);
  EXPECT_EQ(std::get<NicCarrier>(*nic).address, 0x0a400004U);
  EXPECT_TRUE(std::get<NicCarrier>(*nic).up);

  const InterfaceAddresses own{{{0x0a400004, 0x0a400000}, {0xc0a80001}}};
  EXPECT_EQ(evidence_line(own), "i 0a400004:0a400000 c0a80001\n");
  const auto addresses = parse_evidence(without_end(evidence_line(own)));
  ASSERT_TRUE(addresses);
  EXPECT_EQ(std::get<InterfaceAddresses>(*addresses).interfaces, own.interfaces);
  EXPECT_TRUE(parse_evidence("i")) << "a server without addresses";
}

TEST(Evidence, IsRefusedWithCountsThatCannotBe) {
  for (const char* line :
       {"t 1 2 3:4:0a400001", "t 1 2 17:4:0a400001", "t 1 2", "t -1 2 3:3:0a400001",
        "t 1 2 3:3:0a40000", "t 1 2 3:3", "f", "f 1 0a400001:1:0a400002:2:5:6",
        "f 1 0a400001:1:0a400002:70000:5:5", "n 0a400001 maybe", "n 0a4001 up", "x 1", "i 0a4001",
        "i 0a400001:", "i 0a400001  0a400002"})
    EXPECT_FALSE(parse_evidence(line)) << line;
}

TEST(Evidence, OrdersComeBackFromTheirLinesAsTheyWere) {
  const auto trace = parse_order(without_end(order_line(TraceOrder{12, 3, 4})));
  ASSERT_TRUE(trace);
  EXPECT_EQ(std::get<TraceOrder>(*trace).path, 12U);
  EXPECT_EQ(std::get<TraceOrder>(*trace).hops, 3);
  EXPECT_EQ(std::get<TraceOrder>(*trace).tries, 4);
  EXPECT_TRUE(std::holds_alternative<FlowsOrder>(*parse_order("flows")));
  EXPECT_TRUE(std::holds_alternative<CarriersOrder>(*parse_order("carriers")));
  for (const char* line : {"", "trace", "trace 1 9 1", "trace 1 0 1", "trace 1 1 17", "flow"})
    EXPECT_FALSE(parse_order(line)) << line;
}

TEST(Evidence, OfTheMostConnectionsFitsTheLongestLine) {
  FlowCounts counts{.window = 4'000'000'000'000, .flows = {}};
  const FlowCount widest{{0xffffffff, 0xffffffff, 65535, 65535, 6}, 0xffffffff, 0xffffffff};
  counts.flows.assign(kFlowsMost, widest);
  EXPECT_LE(evidence_line(counts).size(), kLongestEvidence);
  const InterfaceAddresses addresses{{std::vector<std::uint32_t>(kAddressesMost, 0xffffffff)}};
  EXPECT_LE(evidence_line(addresses).size(), kLongestEvidence);
}

TEST(Evidence, OfAnyBytesIsReadOrRefused) {
  std::mt19937 random(7);
  const std::string letters = "tfni 0123456789abcdef:updown";
  for (int i = 0; i < 20000; ++i) {
    std::string line = std::string(1, "tfni"[random() % 4]) + " ";
    for (std::size_t k = random() % 40; k > 0; --k)
      line += letters[random() % letters.size()];
    const auto evidence = parse_evidence(line);
    if (!evidence) continue;
    EXPECT_TRUE(parse_evidence(without_end(evidence_line(*evidence)))) << line;
  }
}

}  // namespace
}  // namespace regatta::probe
