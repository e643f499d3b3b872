#include "regatta/network/heal/event_text.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::SizeIs;

TEST(ParseReport, TakesALinkInOneDirectionOrBoth) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(2, 2);
  const auto up = parse_report(
      fabric.graph, R"({"broken": {"link": "leaf0-spine1", "from": "leaf0"}, "why": "probes"})");
  ASSERT_TRUE(up) << up.error().message;
  EXPECT_THAT(up->faults, testing::ElementsAre(fabric.broken_link("leaf0", "spine1")));
  EXPECT_EQ(up->why, "probes");
  const auto down =
      parse_report(fabric.graph, R"({"broken": {"link": "leaf0-spine1", "from": "spine1"}})");
  ASSERT_TRUE(down);
  EXPECT_THAT(down->faults, testing::ElementsAre(fabric.broken_link("spine1", "leaf0")));
  const auto both = parse_report(fabric.graph, R"({"broken": {"link": "leaf0-spine1"}})");
  ASSERT_TRUE(both);
  EXPECT_THAT(both->faults, SizeIs(2));
}

TEST(ParseReport, TakesASwitchAHopAndTheHarm) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(2, 2);
  const auto whole =
      parse_report(fabric.graph, R"({"broken": {"switch": "spine0"}, "harm": "loss"})");
  ASSERT_TRUE(whole);
  EXPECT_THAT(whole->faults, testing::ElementsAre(fabric.broken_switch("spine0", Harm::kLoss)));
  const auto hop = parse_report(
      fabric.graph, R"({"broken": {"link": "leaf0-spine1", "from": "leaf0", "towards": "leaf1"}})");
  ASSERT_TRUE(hop);
  EXPECT_THAT(hop->faults, testing::ElementsAre(Fault{Place::kHop, fabric.link("leaf0", "spine1"),
                                                      fabric.node("leaf1"), Harm::kBlackHole}));
}

TEST(ParseReport, TakesTheOldNamesOfTheHarm) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(2, 2);
  const auto harm = [&](const std::string& name) {
    const auto report = parse_report(
        fabric.graph, R"({"broken": {"switch": "spine0"}, "harm": ")" + name + R"("})");
    return report ? std::string(to_string(report->faults.at(0).harm)) : report.error().message;
  };
  EXPECT_EQ(harm("loses"), "loss");
  EXPECT_EQ(harm("eats"), "black hole");
  EXPECT_EQ(harm("no carrier"), "no carrier");
}

TEST(ParseReport, TakesWhatProbesLose) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(2, 2);
  const auto report = parse_report(
      fabric.graph, R"({"lossy": [{"link": "leaf0-spine1", "from": "spine1", "now": 0.5},)"
                    R"( {"link": "leaf0-spine1", "from": "leaf0", "blind": true}]})");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(report->faults, testing::IsEmpty());
  ASSERT_TRUE(report->losses);
  const std::uint32_t up = fabric.link("leaf0", "spine1");
  EXPECT_THAT(*report->losses, testing::ElementsAre(diag::LinkLoss{.link = up ^ 1U, .now = 0.5},
                                                    diag::LinkLoss{.link = up, .is_blind = true}));
  const auto none = parse_report(fabric.graph, R"({"lossy": []})");
  ASSERT_TRUE(none && none->losses);
  EXPECT_THAT(*none->losses, testing::IsEmpty());
}

TEST(ParseReport, SaysWhatIsWrong) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(2, 2);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", R"(report: not understood; write it like {"broken": {"link": "leaf0-spine1"}})"},
      {"[]", R"(report: not understood; write it like {"broken": {"link": "leaf0-spine1"}})"},
      {R"({"broken": {}})", "report: 'broken' names neither a switch nor a link; give one of them"},
      {R"({"broken": {"switch": "s0"}})",
       "report: there is no switch 's0'; name one like leaf0 or spine1"},
      {R"({"broken": {"link": "leaf0-spine9"}})",
       "report: there is no link 'leaf0-spine9'; name one like leaf1-spine1"},
      {R"({"broken": {"link": "leaf0-spine1", "from": "leaf1"}})",
       "report: 'leaf1' is no end of link leaf0-spine1; it has leaf0 and spine1"},
      {R"({"broken": {"link": "leaf0-spine1", "from": "leaf0", "towards": "spine0"}})",
       "report: 'spine0' is no leaf; 'towards' names the leaf that traffic goes to"},
      {R"({"broken": {"link": "leaf0-spine1", "from": "leaf0", "towards": "leaf0"}})",
       "report: 'from' and 'towards' are both 'leaf0'; name another leaf"},
      {R"({"broken": {"link": "leaf0-spine1", "towards": "leaf1"}})",
       "report: 'towards' needs 'from', an end of the link"},
      {R"({"lossy": 4})", "report: lossy: expected a list, found 4"},
      {R"({"lossy": [{"link": "leaf0-spine1", "from": "leaf0", "now": 2}]})",
       "report: lossy[0].now: expected a number from 0 to 1, found 2"},
      {R"({"lossy": [{"link": "leaf0-spine1", "from": "leaf1"}]})",
       "report: 'leaf1' is no end of link leaf0-spine1; it has leaf0 and spine1"},
      {R"({"broken": {"link": 4}})", "report: broken.link: expected a string, found 4"},
      {R"({"broken": 4})", "report: broken: expected an object, found 4"},
      {R"({"broken": {"switch": "spine0"}, "why": 4})", "report: why: expected a string, found 4"},
      {R"({"broken": {"switch": "spine0"}, "harm": "much"})",
       "report: harm: expected one of loss, black hole, no carrier, found the string \"much\""}};
  for (const auto& [text, message] : cases) {
    const auto report = parse_report(fabric.graph, text);
    ASSERT_FALSE(report) << text;
    EXPECT_EQ(report.error().message, message);
    EXPECT_EQ(report.error().code, Code::kInvalidInput);
  }
}

// It is printed to terminals.
TEST(ParseReport, KeepsOnlyWhatCanBePrinted) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(2, 2);
  const auto report =
      parse_report(fabric.graph, R"({"broken": {"switch": "spine0"}, "why": "\u001b[2J)" +
                                     std::string(900, 'x') + "\"}");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->why.substr(0, 4), "?[2J");
  EXPECT_LE(report->why.size(), 203U);
  std::string letters;
  for (int i = 0; i < 300; ++i)
    letters += "\u00e9";  // two bytes each, so that one is cut
  const auto cut =
      parse_report(fabric.graph, R"({"broken": {"switch": "spine0"}, "why": "x)" + letters + "\"}");
  ASSERT_TRUE(cut);
  Event event;
  event.reasons = {{cut->faults[0], cut->why, Seconds{1}}};
  EXPECT_FALSE(json_line(to_json(fabric.graph, event)).empty());
  const auto wrong = parse_report(fabric.graph, R"({"broken": {"switch": "\u0007"}})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "report: there is no switch '?'; name one like leaf0 or spine1");
}

TEST(Words, TellAnEventInJsonAndInASentence) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  const std::vector<Fault> faults = {fabric.broken_link("spine0", "leaf2")};
  Event event;
  event.at = Seconds{12.5};
  event.reasons = {{faults[0], "no carrier", Seconds{5}}};
  event.changes = Tables(fabric.paths).changes(decide(fabric.paths, faults));
  EXPECT_EQ(to_text(fabric.graph, event),
            "withdrawn: leaf2-spine0 from spine0 to leaf2 (no carrier); out of 2 routes of leaf0, "
            "leaf1; back after 5 s without it");
  const auto json = to_json(fabric.graph, event);
  EXPECT_EQ(json.at("event"), "withdrawn");
  EXPECT_EQ(json.at("at_s"), 12.5);
  EXPECT_EQ(
      json.at("faults")[0],
      nlohmann::json::parse(R"({"harm": "black hole", "link": "leaf2-spine0", "from": "spine0",
                                      "why": "no carrier", "clean_s": 5.0})"));
  EXPECT_EQ(json.at("routes")[1], nlohmann::json::parse(R"({"switch": "leaf1", "towards": "leaf2",
                                      "withdrawn": ["leaf1-spine0"], "left": ["leaf1-spine1"]})"));
}

TEST(Words, NameACableOnceOfWhichBothDirectionsAreBroken) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  const std::string why = "link leaf2-spine0, both ways: black hole 100.0 %, 9 of 9 probes";
  Event event;
  event.kind = EventKind::kHarmless;
  event.reasons = {{fabric.broken_link("spine0", "leaf2"), why, Seconds{5}},
                   {fabric.broken_link("leaf2", "spine0"), why, Seconds{5}}};
  EXPECT_EQ(to_text(fabric.graph, event),
            "noted: leaf2-spine0 both ways (black hole 100.0 %, 9 of 9 probes); there is nothing "
            "to withdraw");
  event.kind = EventKind::kReturned;
  EXPECT_EQ(to_text(fabric.graph, event), "returned: leaf2-spine0 both ways");
}

TEST(Words, NameTheLinksWhereNoFaultSaysWhatHasChanged) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  const std::vector<Fault> faults = {fabric.broken_link("spine0", "leaf2")};
  Event event;
  event.changes = Tables(fabric.paths).changes(decide(fabric.paths, faults));
  EXPECT_EQ(to_text(fabric.graph, event),
            "withdrawn: leaf0-spine0, leaf1-spine0; out of 2 routes of leaf0, leaf1");
}

TEST(Words, AreALineThatCanBeReadHoweverMuchIsBroken) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(40, 2);
  Event event;
  std::vector<Fault> faults;
  for (int leaf = 0; leaf < 40; ++leaf) {
    faults.push_back(fabric.broken_link("leaf" + std::to_string(leaf), "spine1"));
    event.reasons.push_back({faults.back(), "no carrier", Seconds{5}});
  }
  event.changes = Tables(fabric.paths).changes(decide(fabric.paths, faults));
  EXPECT_LE(to_text(fabric.graph, event).size(), 300U) << to_text(fabric.graph, event);
  EXPECT_THAT(to_text(fabric.graph, event), testing::HasSubstr(" and 36 others (no carrier)"));
  for (std::size_t i = 0; i < event.reasons.size(); ++i)
    event.reasons[i].why = std::to_string(i) + std::string(200, '-');
  EXPECT_LE(to_text(fabric.graph, event).size(), 500U) << to_text(fabric.graph, event);
}

TEST(Words, TellWhatIsRefused) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 1);
  Event event;
  event.kind = EventKind::kRefused;
  event.reasons = {{fabric.broken_switch("spine0"), "probes", Seconds{5}}};
  event.refusals =
      decide(fabric.paths, std::vector<Fault>{fabric.broken_switch("spine0")}).refusals;
  EXPECT_EQ(to_text(fabric.graph, event),
            "refused: switch spine0 (probes); leaf1 has no better path to leaf0, and so for 5 more "
            "pairs of leaves");
  EXPECT_THAT(to_json(fabric.graph, event).at("pairs"), SizeIs(6));
}

TEST(Event, OfARestartCarriesTheCount) {
  const auto fabric = TestFabricPaths::two_tiers(2, 2);
  Event event;
  event.kind = EventKind::kRestarted;
  event.message = "signal 9 (Killed) ended the healer";
  event.count = 3;
  const nlohmann::json json = to_json(fabric.graph, event);
  EXPECT_EQ(json["event"], "restarted");
  EXPECT_EQ(json["count"], 3);
  EXPECT_EQ(to_text(fabric.graph, event), "restarted: signal 9 (Killed) ended the healer");
}

}  // namespace
}  // namespace regatta::heal
