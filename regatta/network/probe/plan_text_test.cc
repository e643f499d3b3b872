#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/probe/handshake.h"
#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::StartsWith;

TEST(PlanText, TellsAServerItsPartAndNothingElse) {
  const Fabric fabric({.servers = 4, .servers_per_leaf = 2, .spines = 2});
  const Matrix matrix = plan_matrix(fabric.graph, fabric.routes, fabric.seeds);
  for (int node = 0; node < 4; ++node) {
    const ServerPart part = part_of(fabric.graph, matrix, NodeId{node});
    const auto plan = parse_plan(plan_text(fabric.graph, matrix, part, 0xabc));
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->server, fabric.graph.nodes[part.server.index()].name);
    EXPECT_EQ(plan->number, 0xabcU);
    EXPECT_EQ(plan->part.server, part.server);
    EXPECT_EQ(plan->part.sends, part.sends);
    EXPECT_EQ(plan->part.answers, part.answers);
    for (const auto* probes : {&part.sends, &part.answers})
      for (const std::uint32_t probe : *probes) {
        ASSERT_LT(probe, plan->matrix.probes.size());
        EXPECT_EQ(plan->matrix.probes[probe].flow, matrix.probes[probe].flow);
      }
  }
}

TEST(PlanText, NamesTheLineThatIsWrong) {
  const std::string head = "regatta-probe-plan 1 0 00000000000000ff s0\n";
  EXPECT_TRUE(parse_plan(head));
  EXPECT_TRUE(parse_plan(head + "s 3 1 2 3 4\na 3 1 2 3 4\na 9 1 2 3 4\n"));
  for (const std::string& text : {std::string(), std::string("\n"), head.substr(0, head.size() - 1),
                                  std::string("regatta-probe-plan 2 0 ff s0\n"),
                                  std::string("regatta-probe-plan 1 -1 ff s0\n")})
    EXPECT_THAT(parse_plan(text).error().message, StartsWith("plan of probes: line 1 ")) << text;
  for (const char* line :
       {"s 3 1 2 3 4", "\n", "x 1\n", "s 1\n", "s 1 1 65536 1 1\n", "s 4294967295 1 1 1 1\n",
        "a -1 1 1 1 1\n", "a 1\n", "a 8388608 1 1 1 1\n"})
    EXPECT_THAT(parse_plan(head + line).error().message, StartsWith("plan of probes: line 2 "))
        << line;
  EXPECT_THAT(parse_plan(head + "a 5 1 1 1 1\na 5 1 1 1 1\n").error().message,
              StartsWith("plan of probes: line 3 "));
}

TEST(PlanText, CutOrChangedAnywhereIsReadOrRefused) {
  const Fabric fabric({.servers = 4, .servers_per_leaf = 2, .spines = 2});
  const Matrix matrix = plan_matrix(fabric.graph, fabric.routes, fabric.seeds);
  const std::string good =
      plan_text(fabric.graph, matrix, part_of(fabric.graph, matrix, NodeId{2}), 1);
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string text = good.substr(0, random() % (good.size() + 1));
    for (std::size_t changes = random() % 4; changes > 0 && !text.empty(); --changes)
      text[random() % text.size()] = static_cast<char>(random() % 128);
    const auto plan = parse_plan(text);
    if (!plan) continue;
    EXPECT_LE(plan->part.sends.size() + plan->part.answers.size(), text.size());
    for (const auto* probes : {&plan->part.sends, &plan->part.answers})
      for (const std::uint32_t probe : *probes)
        EXPECT_LT(probe, plan->matrix.probes.size());
  }
}

}  // namespace
}  // namespace regatta::probe
