#include "regatta/app/report/network_report.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/network/probe/test_clusters.h"

namespace regatta::report {
namespace {

class ProbeSummary : public testing::Test {
 protected:
  std::string summary(std::uint64_t probes, std::size_t faults, bool is_json = false,
                      std::size_t restarts = 0) const {
    probe::Coverage coverage;
    coverage.missing = {4, 5, 9};  // both directions of a cable, and one of another
    return ProbeEventFormat(fabric_.graph, matrix_, {.is_json = is_json})
        .summary(coverage,
                 {.probes = probes, .faults = faults, .restarts = restarts, .time = Seconds{10}});
  }

  probe::Fabric fabric_{{.servers = 4}};
  probe::Matrix matrix_;
};

TEST_F(ProbeSummary, SaysThatAHealthyNetworkHasNoFault) {
  EXPECT_EQ(summary(1200, 0), "healthy: " + std::to_string(fabric_.graph.links.size()) +
                                  " links, 0 faults, 2 never covered; 1200 probes of 0 paths over "
                                  "10 s\n");
  EXPECT_NE(summary(1200, 0, true).find("\"faults\":0"), std::string::npos);
}

TEST_F(ProbeSummary, CountsTheFaultsOfARun) {
  EXPECT_THAT(summary(1200, 2), testing::StartsWith("faulty: "));
  EXPECT_THAT(summary(1200, 2), testing::HasSubstr(" links, 2 faults, "));
}

TEST_F(ProbeSummary, CountsTheProbersThatWereStartedAgain) {
  EXPECT_THAT(summary(1200, 0, false, 2), testing::EndsWith(", 2 probers started again\n"));
  EXPECT_NE(summary(1200, 0, true, 2).find("\"restarted_probers\":2"), std::string::npos);
}

TEST_F(ProbeSummary, NamesTheServerOfAProberThatWasStartedAgain) {
  const ProbeEventFormat text(fabric_.graph, matrix_, {});
  EXPECT_EQ(text.restarted("s1", Seconds{2}),
            "   2.00 s  the prober of s1 had ended; it is started again\n");
  const ProbeEventFormat json(fabric_.graph, matrix_, {.is_json = true});
  EXPECT_THAT(json.restarted("s1", Seconds{2}), testing::HasSubstr("\"event\":\"restarted\""));
}

TEST_F(ProbeSummary, ClaimsNothingWithoutProbes) {
  EXPECT_EQ(summary(0, 0), "no probe was sent\n");
}

TEST(TimedLine, AlignsTheTimesOfEvents) {
  EXPECT_EQ(timed_line(Seconds{0.5}, "over"), "   0.50 s  over\n");
  EXPECT_EQ(timed_line(Seconds{1234.5}, "over"), "1234.50 s  over\n");
}

TEST(HealerText, NamesTheSocketAndWhatToStart) {
  EXPECT_EQ(healer_awaited_text("/run/heal.sock"),
            "/run/heal.sock: no healer listens there yet; this looks for it, start regatta heal\n");
  EXPECT_EQ(healer_found_text("/run/heal.sock"), "/run/heal.sock: a healer listens now\n");
  EXPECT_EQ(healer_lost_text("/run/heal.sock"),
            "/run/heal.sock: the healer is gone; this looks for it again, start regatta heal\n");
  EXPECT_EQ(healer_back_text("/run/heal.sock"), "/run/heal.sock: the healer is back\n");
}

TEST(LabList, IsATableOfRunningLabsAndSaysWhenThereIsNone) {
  const std::vector<RunningLab> labs = {
      {.name = "lab-4x2", .servers = 4, .switches = 4, .faults = 1, .age = {90}}};
  const std::string text = lab_list_text(labs);
  EXPECT_NE(text.find("lab-4x2"), std::string::npos);
  EXPECT_NE(text.find("up, 1 faulty link"), std::string::npos);
  EXPECT_EQ(lab_list_json(labs)["labs"][0]["age_s"], 90.0);
  EXPECT_EQ(lab_list_text({}), "no lab is up\n");
  EXPECT_TRUE(lab_list_json({})["labs"].empty());
}

TEST(LabTexts, SayWhatALabHasAndThatItIsDown) {
  lab::LabInfo lab;
  lab.name = "lab-4x2";
  lab.cpu_share = 0.125;
  lab.servers.resize(2);
  EXPECT_EQ(lab_speed_text(lab), "lab lab-4x2: 2 servers, 12.5 % of a core for each device\n");
  EXPECT_EQ(lab_down_text("lab-4x2"), "lab lab-4x2: down\n");
  EXPECT_EQ(lab_down_json({"a", "b"}).dump(), R"({"down":["a","b"]})");
}

TEST(LabFaultText, NamesTheTargetTheKindAndTheAmount) {
  LabFaultChange change{.lab = "l", .kind = "slow", .target = "s0.nic0-leaf0", .amount = "10Mbps"};
  EXPECT_EQ(lab_fault_text(change), "lab l: s0.nic0-leaf0: slow, 10Mbps\n");
  EXPECT_EQ(lab_fault_json(change).dump(),
            R"({"fault":"slow","lab":"l","target":"s0.nic0-leaf0"})");
  change = {.lab = "l", .kind = "clear", .target = "", .amount = ""};
  EXPECT_EQ(lab_fault_text(change), "lab l: all faults: clear\n");
}

TEST(HealingText, CountsSwitchesAndSaysThatADryRunChangesNothing) {
  topo::Graph graph;
  graph.nodes = {{.kind = topo::NodeKind::kServer, .name = "s0"},
                 {.kind = topo::NodeKind::kLeaf, .name = "leaf0"}};
  EXPECT_EQ(healing_text(graph, "/run/h.sock", false),
            "healing 1 switches; reports and subscribers: /run/h.sock\n");
  EXPECT_EQ(healing_text(graph, "/run/h.sock", true),
            "healing 1 switches (dry run: nothing is changed); reports and subscribers: "
            "/run/h.sock\n");
}

}  // namespace
}  // namespace regatta::report
