#include "regatta/network/probe/handshake.h"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::HasSubstr;

const Handshake kHandshake{
    .server = "s1", .period = {0.01}, .plan = 0xfeed, .clock = {1e9}, .token = "open-sesame"};
const ExpectedReporters kExpected{
    .servers = {"s0", "s1"}, .period = {0.01}, .plan = 0xfeed, .token = "open-sesame"};

std::string refusal(const Handshake& handshake, const ExpectedReporters& expected = kExpected) {
  const auto answer = check(handshake, expected, Seconds{1e9});
  return answer ? "" : answer.error().message;
}

TEST(Handshake, IsReadAsItIsWritten) {
  EXPECT_EQ(handshake_line(kHandshake),
            "regatta-prober 3 s1 10000 000000000000feed 1000000000000000 open-sesame");
  const auto read = parse_handshake(handshake_line(kHandshake));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(handshake_line(*read), handshake_line(kHandshake));
  Handshake open = kHandshake;
  open.token = "";
  EXPECT_EQ(parse_handshake(handshake_line(open))->token, "");
}

TEST(ReportPort, StandsBehindWhatNamesNone) {
  EXPECT_EQ(with_report_port("head-1"), "head-1:27899");
  EXPECT_EQ(with_report_port("[::1]"), "[::1]:27899");
  EXPECT_EQ(with_report_port("head-1:80"), "head-1:80");
  EXPECT_EQ(with_report_port("[::1]:80"), "[::1]:80");
  EXPECT_EQ(with_report_port(""), "");
}

TEST(Handshake, OfAProberOfThisPlanIsLetIn) {
  const auto server = check(kHandshake, kExpected, Seconds{1e9 + 0.5});
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ(*server, NodeId{1});
}

TEST(Handshake, OfAnybodyElseIsRefusedWithTheReason) {
  Handshake handshake = kHandshake;
  handshake.token = "open-sesamf";
  EXPECT_THAT(refusal(handshake), HasSubstr("set REGATTA_PROBE_TOKEN"));
  handshake.token = "";
  EXPECT_THAT(refusal(handshake), HasSubstr("its token is another one"));
  handshake.token = "open-sesameopen-sesame";
  EXPECT_THAT(refusal(handshake), HasSubstr("its token is another one"));
  ExpectedReporters open = kExpected;
  open.token = "";
  EXPECT_THAT(refusal(kHandshake, open), HasSubstr("unset REGATTA_PROBE_TOKEN here"));
  handshake = kHandshake;
  handshake.server = "s7";
  EXPECT_THAT(refusal(handshake), HasSubstr("server s7 is not in the collector's cluster"));
  handshake = kHandshake;
  handshake.plan = 1;
  EXPECT_THAT(refusal(handshake), HasSubstr("server s1 probes by another plan"));
  handshake = kHandshake;
  handshake.period = {0.1};
  EXPECT_THAT(refusal(handshake), HasSubstr("server s1 probes each 100 ms, the others each 10 ms"));
  handshake = kHandshake;
  handshake.clock = {1e9 + 3600};
  EXPECT_THAT(refusal(handshake), HasSubstr("the clock of server s1 is 3600.0 s ahead of"));
  handshake.clock = {1e9 - 2};
  EXPECT_THAT(refusal(handshake),
              HasSubstr("2.0 s behind the collector's; keep the clocks together"));
  EXPECT_EQ(refusal(kHandshake), "");
}

TEST(Handshake, ThatIsNoneIsRefused) {
  const std::string good = handshake_line(kHandshake);
  for (const std::string& line :
       {std::string(), std::string("GET / HTTP/1.1"), std::string("regatta-prober"),
        std::string("regatta-prober 3 s1 10000 feed 1"), good + " more", " " + good,
        std::string("regatta-prober 3 s1 -1 feed 1 -"),
        std::string("regatta-prober 3 s1 1 feeg 1 -"),
        std::string("regatta-prober 1 s\x01 1 feed 1 -"),
        std::string("regatta-prober 1  1 feed 1 -"),
        "regatta-prober 1 " + std::string(2000, 's') + " 1 feed 1 -"})
    EXPECT_FALSE(parse_handshake(line)) << line;
  EXPECT_THAT(parse_handshake("regatta-prober 4 s1 what comes then").error().message,
              HasSubstr("speaks version 4, the collector 3"));
}

TEST(Handshake, CutOrChangedAnywhereIsReadOrRefusedButNeverMoreThanItSays) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string line = handshake_line(kHandshake).substr(0, random() % 80);
    for (std::size_t changes = random() % 4; changes > 0 && !line.empty(); --changes)
      line[random() % line.size()] = static_cast<char>(random() % 256);
    const auto handshake = parse_handshake(line);
    if (!handshake) continue;
    EXPECT_EQ(parse_handshake(handshake_line(*handshake))->server, handshake->server) << line;
    EXPECT_LE(handshake->server.size() + handshake->token.size(), line.size());
  }
}

TEST(PlanNumber, DiffersWhereThePlansDo) {
  const Fabric one({.servers = 4, .servers_per_leaf = 2, .spines = 2});
  const Matrix matrix = plan_matrix(one.graph, one.routes, one.seeds);
  const std::uint64_t number = plan_number(one.graph, matrix);
  EXPECT_EQ(plan_number(one.graph, plan_matrix(one.graph, one.routes, one.seeds)), number);
  Matrix other = matrix;
  other.probes[0].flow.from_port ^= 1;
  EXPECT_NE(plan_number(one.graph, other), number);
  topo::Graph renamed = one.graph;
  renamed.nodes[0].name = "x0";
  EXPECT_NE(plan_number(renamed, matrix), number);
}

TEST(HandshakeAnswer, SaysYesOrWhyNot) {
  EXPECT_EQ(answer_line({}), "ok");
  EXPECT_TRUE(parse_answer("ok"));
  const Status no = parse_answer(answer_line(Error{Code::kInvalidInput, "not you"}));
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().code, Code::kConflict);
  EXPECT_EQ(no.error().message, "not you");
  EXPECT_EQ(parse_answer("HTTP/1.1 400 Bad Request").error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace regatta::probe
