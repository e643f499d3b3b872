#include "regatta/network/heal/verdicts.h"

#include <sstream>

#include <gmock/gmock.h>

#include "regatta/network/heal/event_text.h"
#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Verdicts : public testing::Test {
 protected:
  diag::FaultVerdict of(const diag::Culprit& culprit, diag::Symptom symptom) const {
    diag::FaultVerdict verdict;
    verdict.culprit = culprit;
    verdict.symptom = symptom;
    return verdict;
  }
  LinkId link(const std::string& from, const std::string& to) const {
    return LinkId{static_cast<int>(fabric_.link(from, to) / 2)};
  }

  TestFabricPaths fabric_ = TestFabricPaths::two_tiers(2, 2);
};

TEST_F(Verdicts, HoldALinkInTheDirectionThatSuffers) {
  const auto down = of(diag::link_culprit({link("leaf0", "spine1"), false}), diag::Symptom::kLoss);
  EXPECT_THAT(faults_of(down), ElementsAre(fabric_.broken_link("spine1", "leaf0", Harm::kLoss)));
  const auto both =
      of(diag::both_directions_culprit(link("leaf0", "spine1")), diag::Symptom::kNoCarrier);
  EXPECT_THAT(faults_of(both),
              ElementsAre(fabric_.broken_link("leaf0", "spine1", Harm::kNoCarrier),
                          fabric_.broken_link("spine1", "leaf0", Harm::kNoCarrier)));
}

TEST_F(Verdicts, HoldASwitchThatDropsSomeFlows) {
  const auto verdict = of(diag::switch_culprit(fabric_.node("spine0")), diag::Symptom::kSomeFlows);
  EXPECT_THAT(faults_of(verdict), ElementsAre(fabric_.broken_switch("spine0")));
}

TEST_F(Verdicts, HoldNothingForServersAndBusyHosts) {
  EXPECT_THAT(faults_of(of(diag::server_culprit(NodeId{0}), diag::Symptom::kSilent)), IsEmpty());
  EXPECT_THAT(faults_of(of(diag::host_noise_culprit(NodeId{0}), diag::Symptom::kLate)), IsEmpty());
  EXPECT_THAT(faults_of({}), IsEmpty());
  EXPECT_EQ(report_lines(fabric_.graph, {}), "");
}

TEST_F(Verdicts, OfWhatIsSetUpWronglyAreNotedAndHoldNothing) {
  const auto swapped = of(diag::cabling_culprit(link("leaf0", "spine0"), link("leaf1", "spine0")),
                          diag::Symptom::kSwapped);
  EXPECT_THAT(faults_of(swapped), IsEmpty());
  const auto report = parse_report(fabric_.graph, report_lines(fabric_.graph, swapped));
  ASSERT_TRUE(report);
  EXPECT_THAT(report->faults, IsEmpty());
  EXPECT_EQ(report->noted, "cables leaf0-spine0 and leaf1-spine0");
  EXPECT_EQ(report->why, "swapped");
}

TEST_F(Verdicts, AreUnderstoodByTheSocket) {
  for (const auto& verdict :
       {of(diag::switch_culprit(fabric_.node("spine0")), diag::Symptom::kLoss),
        of(diag::both_directions_culprit(link("leaf1", "spine0")), diag::Symptom::kBlackHole),
        of(diag::switch_culprit(fabric_.node("spine1")), diag::Symptom::kUserPackets),
        of(diag::nic_culprit(fabric_.graph, link("s0", "leaf0")), diag::Symptom::kLoss)}) {
    std::istringstream lines(report_lines(fabric_.graph, verdict));
    std::vector<Fault> understood;
    for (std::string line; std::getline(lines, line);) {
      const auto report = parse_report(fabric_.graph, line);
      ASSERT_TRUE(report) << report.error().message;
      EXPECT_EQ(report->why, diag::to_string(fabric_.graph, verdict));
      EXPECT_EQ(report->is_probed, verdict.symptom != diag::Symptom::kUserPackets);
      understood.insert(understood.end(), report->faults.begin(), report->faults.end());
    }
    EXPECT_FALSE(understood.empty());
    EXPECT_EQ(understood, faults_of(verdict));
  }
}

TEST_F(Verdicts, GoWithALineOfWhatProbesLose) {
  const std::vector<diag::LinkLoss> losses = {
      {.link = fabric_.link("leaf0", "spine1"), .now = 0.25, .left = 0.125},
      {.link = fabric_.link("spine0", "leaf1"), .is_blind = true}};
  const std::string line = losses_line(fabric_.graph, losses, Seconds{0.9});
  ASSERT_TRUE(line.ends_with("\n"));
  const auto report = parse_report(fabric_.graph, line.substr(0, line.size() - 1));
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->losses, losses);
  EXPECT_EQ(report->losses_span, Seconds{0.9});
  EXPECT_EQ(losses_line(fabric_.graph, std::vector<diag::LinkLoss>(501), Seconds{0.09}), "");
}

}  // namespace
}  // namespace regatta::heal
