#include "regatta/network/diag/internal/ended_faults.h"

#include <gmock/gmock.h>

#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

constexpr Window kLast = 19;

// One path over the link, one beside it; ten probes in each window.
class EndedFaultsTest : public testing::Test {
 protected:
  // The path over the link loses all until `until`, and nothing later.
  PathTally tally(Window until) const {
    PathTally tally(0, kLast);
    tally.add_path(over_);
    tally.add_path(beside_);
    for (Window window = 0; window <= kLast; ++window) {
      tally.set(0, window, 10, window <= until ? 10 : 0);
      tally.set(1, window, 10, 0);
    }
    return tally;
  }
  FaultVerdict verdict(Symptom symptom) const {
    return {.culprit = link_culprit(fabric::directed_link(over_[0])),
            .symptom = symptom,
            .confidence = 1};
  }
  static int windows_left(const PathTally& tally, std::size_t path, Window first, Window last) {
    int count = 0;
    for (Window window = first; window <= last; ++window)
      count += tally.counts_at(path, window).first > 0 ? 1 : 0;
    return count;
  }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  std::vector<std::uint32_t> over_ = {fabric::number_of({fabric_.nics[0], true})};
  std::vector<std::uint32_t> beside_ = {fabric::number_of({fabric_.nics[1], true})};
  EndedFaults ended_{fabric_.graph};
};

TEST_F(EndedFaultsTest, KeepAllWindowsOfAFaultThatLasts) {
  PathTally counted = tally(kLast);
  ended_.trim(std::vector{verdict(Symptom::kSomeFlows)}, counted);
  EXPECT_EQ(windows_left(counted, 0, 0, kLast), 20);
}

TEST_F(EndedFaultsTest, LeaveOutTheNewestWindowsWhileTheEndIsUnsure) {
  PathTally counted = tally(kLast - 2);
  ended_.trim(std::vector{verdict(Symptom::kSomeFlows)}, counted);
  EXPECT_EQ(windows_left(counted, 0, 0, kLast - 2), 18);
  EXPECT_EQ(windows_left(counted, 0, kLast - 1, kLast), 0);
  EXPECT_EQ(windows_left(counted, 1, 0, kLast), 20) << "the path beside";
}

TEST_F(EndedFaultsTest, LeaveOutTheWindowsBeforeASureEndAlsoWhenTheFaultIsOver) {
  PathTally counted = tally(kLast - 5);
  ended_.trim(std::vector{verdict(Symptom::kBlackHole)}, counted);
  EXPECT_EQ(windows_left(counted, 0, 0, kLast - 5), 0);
  EXPECT_EQ(windows_left(counted, 0, kLast - 4, kLast), 5);
  PathTally later = tally(kLast - 5);
  ended_.trim({}, later);
  EXPECT_FALSE(later.has_lost(0));
}

TEST_F(EndedFaultsTest, KeepAllWindowsOfALossThatHasCleanOnes) {
  PathTally counted = tally(kLast - 5);
  ended_.trim(std::vector{verdict(Symptom::kLoss)}, counted);
  EXPECT_EQ(windows_left(counted, 0, 0, kLast), 20);
}

TEST_F(EndedFaultsTest, CountAFaultAgainThatComesBack) {
  PathTally counted = tally(kLast - 5);
  ended_.trim(std::vector{verdict(Symptom::kBlackHole)}, counted);
  PathTally again = tally(kLast - 5);
  for (Window window = kLast - 1; window <= kLast; ++window)
    again.set(0, window, 10, 10);
  ended_.trim(std::vector{verdict(Symptom::kBlackHole)}, again);
  EXPECT_EQ(windows_left(again, 0, 0, kLast - 5), 0) << "before the first end";
  EXPECT_EQ(windows_left(again, 0, kLast - 4, kLast), 5);
}

TEST_F(EndedFaultsTest, TakeABlackHoleThatLosesSomePacketsForAnotherFaultInTheEnd) {
  PathTally counted = tally(kLast - 10);
  for (Window window = kLast - 9; window <= kLast; ++window)
    counted.set(0, window, 10, 3);
  ended_.trim(std::vector{verdict(Symptom::kBlackHole)}, counted);
  EXPECT_EQ(windows_left(counted, 0, 0, kLast - 10), 0);
  EXPECT_EQ(windows_left(counted, 0, kLast - 9, kLast), 10);
}

TEST_F(EndedFaultsTest, JudgeNoPathThatAnotherActiveFaultCloses) {
  // Both faults lie on both paths; the second one lasts.
  PathTally counted = tally(kLast - 5);
  FaultVerdict other = verdict(Symptom::kBlackHole);
  other.culprit = nic_culprit(fabric_.graph, fabric_.nics[0]);
  ended_.trim(std::vector{verdict(Symptom::kBlackHole), other}, counted);
  EXPECT_EQ(windows_left(counted, 0, 0, kLast), 20);
}

}  // namespace
}  // namespace regatta::diag
