#include "regatta/app/report/network_report.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/routes.h"
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

class CounterEvents : public testing::Test {
 protected:
  CounterEvents() {
    verdict_.culprit = diag::both_directions_culprit(cable_);
    findings_.ports = {{.port = port_,
                        .span = Seconds{12},
                        .in_packets = 30112,
                        .in_errors = 1204,
                        .in_drops = 0,
                        .out_errors = {},
                        .out_drops = 7}};
  }
  std::string counted(const std::vector<diag::Culprit>& others = {}) const {
    return text_.counted(verdict_, findings_, others, Seconds{2});
  }

  probe::Fabric fabric_{{.servers = 4}};
  probe::Matrix matrix_;
  const LinkId cable_ = topo::find_link(fabric_.graph, "leaf0-spine0").value();
  const diag::PortNumber port_ = fabric::number_of({cable_, true});
  diag::FaultVerdict verdict_;
  diag::CounterFindings findings_;
  ProbeEventFormat text_{fabric_.graph, matrix_, {}};
  ProbeEventFormat json_{fabric_.graph, matrix_, {.is_json = true}};
};

TEST_F(CounterEvents, SayWhatThePortsOfAVerdictHaveCounted) {
  findings_.errors = 1204;
  findings_.opinion = diag::CounterOpinion::kAgrees;
  EXPECT_EQ(counted({diag::switch_culprit(fabric_.graph.links[cable_.index()].b)}),
            "   2.00 s  link leaf0-spine0, both ways: counters over 12 s: leaf0 at leaf0-spine0: "
            "1204 of 30112 packets broken, 7 dropped when sent; they agree; errors at switch "
            "spine0\n");
  const auto event = nlohmann::json::parse(json_.counted(verdict_, findings_, {}, Seconds{2}));
  EXPECT_EQ(event["counters"], "agree");
  EXPECT_EQ(event["ports"][0]["in_errors"], 1204);
  EXPECT_EQ(event["ports"][0]["device"], "leaf0");
  EXPECT_FALSE(event["ports"][0].contains("out_errors"));
}

TEST_F(CounterEvents, SayThatPortsWithoutErrorsDisagree) {
  findings_.ports[0].in_errors = findings_.ports[0].out_drops = 0;
  findings_.opinion = diag::CounterOpinion::kDisagrees;
  EXPECT_EQ(counted(),
            "   2.00 s  link leaf0-spine0, both ways: counters over 12 s: no errors at 1 port; "
            "they disagree: a bad cable would show there\n");
}

TEST_F(CounterEvents, NameASuspicionWithItsSource) {
  const diag::CounterSuspicion suspicion{
      .culprit = diag::link_culprit(fabric::directed_link(port_ ^ 1U)),
      .growth = findings_.ports[0]};
  EXPECT_EQ(text_.suspicion(suspicion, Seconds{3}),
            "   3.00 s  suspected: link leaf0-spine0 from spine0 to leaf0: leaf0 counted 1204 of "
            "30112 packets broken in 12 s; probes lose nothing there\n");
  const auto event = nlohmann::json::parse(json_.suspicion(suspicion, Seconds{3}));
  EXPECT_EQ(event["event"], "suspected");
  EXPECT_EQ(event["source"], "counters");
  EXPECT_EQ(event["is_fault"], false);
}

TEST_F(CounterEvents, SayThatCountersAreStaleAndComeAgain) {
  diag::CounterSilence silence{
      .node = fabric_.graph.links[cable_.index()].a, .is_stale = true, .silence = Seconds{16}};
  EXPECT_EQ(text_.counter_silence(silence, Seconds{3}),
            "   3.00 s  counters of leaf0: none for 16 s, they are stale; see its collector\n");
  silence.is_stale = false;
  EXPECT_EQ(text_.counter_silence(silence, Seconds{3}),
            "   3.00 s  counters of leaf0: they come again\n");
  EXPECT_THAT(json_.counter_silence(silence, Seconds{3}),
              testing::HasSubstr("\"event\":\"counters_heard\""));
}

TEST_F(CounterEvents, CountTheLinesAtTheEnd) {
  const ProbeEventFormat::Totals totals{
      .probes = 10, .time = Seconds{10}, .counters = {{.all = 40, .left_out = 3}}};
  EXPECT_THAT(text_.summary({}, totals),
              testing::EndsWith(" over 10 s, 40 lines of counters (3 left out)\n"));
  EXPECT_THAT(json_.summary({}, totals), testing::HasSubstr("\"counter_lines_left_out\":3"));
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
  EXPECT_EQ(healing_json(graph, "/run/h.sock", true, Seconds{2.5}).dump(),
            R"({"at_s":2.5,"dry_run":true,"event":"started","socket":"/run/h.sock","switches":1})");
}

}  // namespace
}  // namespace regatta::report
