#include "regatta/network/diag/internal/link_losses.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "regatta/model/topo/graph_names.h"
#include "regatta/network/diag/test_round_trips.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

// One probe from the first to the last of six servers on three leaves, over spine0.
class LinkLossesTest : public testing::Test {
 protected:
  fabric::Paths there_and_back() const {
    fabric::Paths paths;
    add_round_trip(fabric_, 0, 5, 0, paths);
    return paths;
  }
  std::uint32_t link(const std::string& name, bool forward) const {
    return fabric::number_of({topo::find_link(fabric_.graph, name).value(), forward});
  }
  // A window in which so many of three packets arrive; all are answered.
  void report(Window window, std::uint16_t arrive, Seconds worst_gap = {}) {
    windows_.add({.server = windows_.sender(0),
                  .window = window,
                  .host = {.worst_gap = worst_gap},
                  .sent = {{.probe = 0, .sent = 3, .answered = arrive}}});
    windows_.add({.server = windows_.receiver(0),
                  .window = window,
                  .arrived = {{.probe = 0, .arrived = arrive}}});
  }
  // The entry of this link after window `last`; none: it is not listed.
  std::optional<LinkLoss> loss_of(std::uint32_t one, Window last) const {
    const Seconds now{0.03 * static_cast<double>(last + 2)};
    for (const LinkLoss& loss :
         link_losses({fabric_.graph, paths_, windows_, left_out_, broken_}, last, now))
      if (loss.link == one) return loss;
    return std::nullopt;
  }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  fabric::Paths paths_ = there_and_back();
  ProbeWindows windows_{fabric_.graph, paths_, LocatorOptions{}};
  std::vector<bool> left_out_;
  std::vector<std::uint32_t> broken_;
  std::uint32_t up_ = link("leaf0-spine0", true);
  std::uint32_t down_ = link("leaf2-spine0", false);
};

TEST_F(LinkLossesTest, CountTheFirstLossAtOnceOnAllLinksOfItsPath) {
  for (Window window = 0; window < 20; ++window)
    report(window, 3);
  EXPECT_EQ(loss_of(up_, 19), std::nullopt);
  report(20, 0);
  for (const std::uint32_t one : {up_, down_})
    EXPECT_EQ(loss_of(one, 20), (LinkLoss{one, 1.0 / 3, 1.0 / 17, false}));
  // The packets back were never sent.
  EXPECT_EQ(loss_of(down_ ^ 1U, 20), std::nullopt);
}

// A black hole is over with the next packets; who knows whether one of twenty is still lost?
TEST_F(LinkLossesTest, TellWhatALinkMayStillLose) {
  report(0, 0);
  report(1, 0);
  EXPECT_EQ(loss_of(up_, 1), (LinkLoss{up_, 1, 1, false}));
  report(2, 3);
  EXPECT_EQ(loss_of(up_, 2), (LinkLoss{up_, 2.0 / 3, 2.0 / 3, false}));
  report(3, 3);
  EXPECT_EQ(loss_of(up_, 3), (LinkLoss{up_, 1.0 / 3, 1.0 / 3, false}));
  report(4, 3);
  EXPECT_EQ(loss_of(up_, 4), (LinkLoss{up_, 0, 0, false}));
  for (Window window = 5; window < 40; ++window)
    report(window, window == 30 ? 2 : 3);
  EXPECT_EQ(loss_of(up_, 35), (LinkLoss{up_, 0, 1.0 / 51, false}));
}

// A packet that died on a known link says nothing of the links behind it.
TEST_F(LinkLossesTest, CountForAKnownFaultAndNotForItsNeighbours) {
  for (Window window = 0; window < 9; ++window)
    report(window, window % 2 == 0 ? 0 : 3);
  broken_ = {up_};
  EXPECT_GT(loss_of(up_, 8)->now, 0.3);
  EXPECT_TRUE(loss_of(down_, 8)->is_blind);
  // A known fault that loses little explains the losses that it may have made.
  for (Window window = 9; window < 30; ++window)
    report(window, window == 25 ? 2 : 3);
  EXPECT_GT(loss_of(up_, 25)->now, 0);
  EXPECT_EQ(loss_of(down_, 25), std::nullopt);
}

TEST_F(LinkLossesTest, WaitForLateAnswersOfBusyServers) {
  report(0, 3);
  report(1, 0, Seconds{0.1});
  EXPECT_EQ(loss_of(up_, 1), std::nullopt);
}

TEST_F(LinkLossesTest, NameTheLinksThatNoProbeCrosses) {
  report(0, 3);
  const auto over_the_other = loss_of(link("leaf0-spine1", true), 0);
  ASSERT_NE(over_the_other, std::nullopt);
  EXPECT_TRUE(over_the_other->is_blind);
  left_out_ = {true, true};
  EXPECT_TRUE(loss_of(up_, 0)->is_blind);
}

}  // namespace
}  // namespace regatta::diag
