#include "regatta/network/diag/internal/probe_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/diag/test_round_trips.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One probe from the first to the last of six servers.
class ProbeWindowsTest : public testing::Test {
 protected:
  fabric::Paths there_and_back() const {
    fabric::Paths paths;
    add_round_trip(fabric_, 0, 5, 0, paths);
    return paths;
  }

  void report_both(ProbeWindows& windows, Window window, HostState sender = {}) const {
    windows.add({.server = windows.sender(0),
                 .window = window,
                 .host = sender,
                 .sent = {{.probe = 0, .sent = 3, .answered = 1}}});
    windows.add(
        {.server = windows.receiver(0), .window = window, .arrived = {{.probe = 0, .arrived = 2}}});
  }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  ProbeWindows windows_{fabric_.graph, there_and_back(), LocatorOptions{}};
};

TEST_F(ProbeWindowsTest, KeepTheCountsOfBothEnds) {
  report_both(windows_, 7);
  const ProbeWindows::Cell& cell = windows_.cell(0, 7);
  EXPECT_EQ(cell.sent, 3);
  EXPECT_EQ(cell.answered, 1);
  EXPECT_EQ(cell.arrived, 2);
  EXPECT_TRUE(windows_.has_losses());
  EXPECT_EQ(windows_.first(), 7);
}

TEST_F(ProbeWindowsTest, ForgetLossesWithTheirWindow) {
  report_both(windows_, 7);
  windows_.advance(7 + Window{ProbeWindows::kSlots});
  EXPECT_FALSE(windows_.has_losses());
  report_both(windows_, 7);
  EXPECT_FALSE(windows_.has_losses()) << "older than the memory";
}

TEST_F(ProbeWindowsTest, IgnoreReportsOfTheFarFuture) {
  report_both(windows_, 7);
  report_both(windows_, 8 + Window{ProbeWindows::kSlots});
  EXPECT_EQ(windows_.newest(), 7);
}

TEST_F(ProbeWindowsTest, CountALossOnceBothEndsHaveReportedAndItIsLate) {
  std::vector<NodeId> noisy;
  windows_.add({.server = windows_.sender(0),
                .window = 7,
                .sent = {{.probe = 0, .sent = 3, .answered = 1}}});
  EXPECT_FALSE(windows_.is_usable(0, 7, Seconds{1}, noisy)) << "the receiver has not reported";
  report_both(windows_, 7);
  EXPECT_FALSE(windows_.is_usable(0, 7, 8 * Seconds{0.03}, noisy)) << "within the grace";
  EXPECT_TRUE(windows_.is_usable(0, 7, Seconds{1}, noisy));
  EXPECT_THAT(noisy, IsEmpty());
}

TEST_F(ProbeWindowsTest, NameTheEndThatWasTooBusy) {
  std::vector<NodeId> noisy;
  report_both(windows_, 7);
  report_both(windows_, 9, {.worst_gap = Seconds{0.5}});
  EXPECT_FALSE(windows_.is_usable(0, 7, Seconds{1}, noisy));
  EXPECT_THAT(noisy, ElementsAre(windows_.sender(0)));
}

}  // namespace
}  // namespace regatta::diag
