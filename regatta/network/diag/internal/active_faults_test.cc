#include "regatta/network/diag/internal/active_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// Six servers on three leaves, two spines.
class ActiveFaultsTest : public testing::Test {
 protected:
  FaultVerdict verdict(const Culprit& culprit, Symptom symptom = Symptom::kLoss) const {
    return {.culprit = culprit, .symptom = symptom, .confidence = 1};
  }
  Culprit server() const { return server_culprit(fabric_.graph.links[nic_.index()].a); }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  LocatorOptions options_{.clean_time = Seconds{1}, .changes = Seconds{0.5}};
  ActiveFaults faults_{fabric_.graph, options_};
  LinkId nic_ = fabric_.nics[0];
};

TEST_F(ActiveFaultsTest, BeginOnceAndEndAfterACleanTime) {
  const Culprit culprit = nic_culprit(fabric_.graph, nic_);
  EXPECT_THAT(faults_.update({verdict(culprit)}, Seconds{1}).begun, SizeIs(1));
  EXPECT_TRUE(faults_.update({verdict(culprit)}, Seconds{1.5}).is_empty());
  EXPECT_TRUE(faults_.update({}, Seconds{2.5}).is_empty());
  EXPECT_THAT(faults_.update({}, Seconds{2.6}).over, SizeIs(1));
  EXPECT_THAT(faults_.verdicts(), IsEmpty());
}

TEST_F(ActiveFaultsTest, DoNotEndWhileNobodyObservesThem) {
  const Culprit culprit = nic_culprit(fabric_.graph, nic_);
  faults_.update({verdict(culprit)}, Seconds{1});
  bool is_observed = false;
  const auto observed = [&](const FaultVerdict&) { return is_observed; };
  EXPECT_TRUE(faults_.update({}, Seconds{10}, observed).is_empty());
  is_observed = true;
  EXPECT_TRUE(faults_.update({}, Seconds{10.5}, observed).is_empty());
  EXPECT_THAT(faults_.update({}, Seconds{11.1}, observed).over, SizeIs(1));
}

TEST_F(ActiveFaultsTest, LastAsLongAsTheyAreFoundAgainOrNobodyObservesThem) {
  faults_.update({verdict(nic_culprit(fabric_.graph, nic_))}, Seconds{1});
  EXPECT_THAT(faults_.lasting(), SizeIs(1));
  faults_.update({}, Seconds{1.1}, [](const FaultVerdict&) { return false; });
  EXPECT_THAT(faults_.lasting(), SizeIs(1));
  faults_.update({}, Seconds{1.2}, [](const FaultVerdict&) { return true; });
  EXPECT_THAT(faults_.lasting(), IsEmpty());
  EXPECT_THAT(faults_.verdicts(), SizeIs(1));
}

TEST_F(ActiveFaultsTest, DoNotBeginWithoutConfidence) {
  FaultVerdict unsure = verdict(server());
  unsure.confidence = 0.9;
  EXPECT_TRUE(faults_.update({unsure}, Seconds{1}).is_empty());
}

TEST_F(ActiveFaultsTest, ChangeTheirSymptomOnlyWhenAnotherOneLasts) {
  faults_.update({verdict(server())}, Seconds{1});
  const FaultVerdict other = verdict(server(), Symptom::kBlackHole);
  EXPECT_TRUE(faults_.update({other}, Seconds{1.4}).is_empty());
  EXPECT_THAT(faults_.update({other}, Seconds{1.5}).changed, SizeIs(1));
  EXPECT_TRUE(faults_.update({other}, Seconds{2.5}).is_empty());
}

TEST_F(ActiveFaultsTest, EndAtOnceWhenAnotherFaultOnTheirLinksReplacesThem) {
  faults_.update({verdict(server())}, Seconds{1});
  const FaultChanges changes =
      faults_.update({verdict(nic_culprit(fabric_.graph, nic_))}, Seconds{1.1});
  EXPECT_THAT(changes.begun, SizeIs(1));
  EXPECT_THAT(changes.over, SizeIs(1));
}

TEST_F(ActiveFaultsTest, WaitForTheirConfirmationWhereFlowsMayHaveMoved) {
  options_.confirmation_delay = Seconds{1};
  ActiveFaults faults(fabric_.graph, options_);
  const FaultVerdict some_flows = verdict(server(), Symptom::kSomeFlows);
  EXPECT_TRUE(faults.update({some_flows}, Seconds{1}).is_empty());
  EXPECT_THAT(faults.unconfirmed(), SizeIs(1));
  EXPECT_TRUE(faults.update({some_flows}, Seconds{1.5}).is_empty());
  EXPECT_THAT(faults.update({some_flows}, Seconds{2}).begun, SizeIs(1));
}

}  // namespace
}  // namespace regatta::diag
