#include "regatta/network/diag/internal/variant_locator.h"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/graph_names.h"
#include "regatta/network/diag/internal/path_crossing.h"
#include "regatta/network/diag/test_round_trips.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Six servers on three leaves, two spines; a probe each between all of them over each spine.
class VariantLocatorTest : public testing::Test {
 protected:
  VariantLocatorTest() {
    probes_.emplace(fabric_.graph, paths_, options_);
    locator_.emplace(fabric_.graph, paths_, Symptom::kLargePackets, options_);
  }

  using IsLost = std::function<bool(std::span<const std::uint32_t> path)>;
  static bool never(std::span<const std::uint32_t>) { return false; }
  IsLost over(const std::string& name, bool forward) const {
    const std::uint32_t one =
        fabric::number_of({topo::find_link(fabric_.graph, name).value(), forward});
    return [one](std::span<const std::uint32_t> path) {
      return std::ranges::find(path, one) != path.end();
    };
  }

  // One cycle, in which probes and large packets are lost as said: the sure culprits at its end.
  std::vector<std::string> cycle(const IsLost& is_large_lost, const IsLost& is_probe_lost = never) {
    for (Window window = cycle_ * kWindowsPerCycle; window < (cycle_ + 1) * kWindowsPerCycle;
         ++window)
      add_window(window, is_probe_lost);
    for (std::size_t server = 0; server < 6; ++server) {
      VariantReport report{.server = NodeId{static_cast<int>(server)}, .cycle = cycle_};
      fill(server, 1, is_large_lost, report);
      locator_->add(report);
    }
    ++cycle_;
    // A little later, when the reports of both ends are there.
    for (Window later = 0; later < 4; ++later)
      add_window(cycle_ * kWindowsPerCycle + later, is_probe_lost);
    found_ = locator_->evaluate(
        *probes_, active_, [&](std::uint32_t path) { return is_planned_(paths_.links(path)); },
        cycle_ * kWindowsPerCycle + 3);
    std::vector<std::string> culprits;
    for (const FaultVerdict& one : found_)
      if (one.confidence >= options_.confidence)
        culprits.push_back(to_string(fabric_.graph, one.culprit));
    return culprits;
  }
  std::vector<std::string> cycles(int count, const IsLost& is_large_lost,
                                  const IsLost& is_probe_lost = never) {
    std::vector<std::string> last;
    for (int i = 0; i < count; ++i)
      last = cycle(is_large_lost, is_probe_lost);
    return last;
  }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  const TestRoundTrips trips_{fabric_};
  const fabric::Paths& paths_ = trips_.paths;
  const std::vector<std::pair<std::size_t, std::size_t>>& ends_ = trips_.ends;
  LocatorOptions options_;
  std::optional<ProbeWindows> probes_;
  std::optional<VariantLocator> locator_;
  IsLost is_planned_ = [](std::span<const std::uint32_t>) { return true; };
  std::vector<FaultVerdict> active_;
  std::vector<FaultVerdict> found_;
  Window cycle_ = 1000;

 private:
  template <typename Report>
  void fill(std::size_t server, std::uint16_t each, const IsLost& is_lost, Report& report) const {
    for (std::uint32_t probe = 0; probe < ends_.size(); ++probe) {
      const auto [from, to] = ends_[probe];
      const bool is_lost_there = is_lost(paths_.links(2 * probe));
      const bool is_lost_at_all = is_lost_there || is_lost(paths_.links(2 * probe + 1));
      const auto count = [&](bool lost) { return static_cast<std::uint16_t>(lost ? 0 : each); };
      if (from == server) report.sent.push_back({probe, each, count(is_lost_at_all)});
      if (to == server) report.arrived.push_back({probe, count(is_lost_there)});
    }
  }
  void add_window(Window window, const IsLost& is_probe_lost) {
    for (std::size_t server = 0; server < 6; ++server) {
      ProbeReport report{.server = NodeId{static_cast<int>(server)}, .window = window};
      fill(server, 3, is_probe_lost, report);
      probes_->add(report);
    }
  }
};

TEST_F(VariantLocatorTest, FindsTheDirectionOfALinkThatTakesAllLargePackets) {
  EXPECT_THAT(cycles(10, never), IsEmpty());
  EXPECT_THAT(cycles(4, over("leaf1-spine0", false)),
              ElementsAre("link leaf1-spine0 from spine0 to leaf1"));
  EXPECT_EQ(found_[0].symptom, Symptom::kLargePackets);
  EXPECT_GT(found_[0].confidence, 0.99);
  EXPECT_GT(found_[0].loss_share, 0.99);
}

TEST_F(VariantLocatorTest, FindsASwitch) {
  cycles(10, never);
  const auto links =
      sorted_links(fabric_.graph, switch_culprit(*topo::find_node(fabric_.graph, "spine1")));
  const IsLost crosses = [&](std::span<const std::uint32_t> path) {
    return crosses_any(path, links);
  };
  EXPECT_THAT(cycles(5, crosses), ElementsAre("switch spine1"));
}

TEST_F(VariantLocatorTest, SaysNothingWhereProbesAreLostToo) {
  cycles(10, never);
  const IsLost is_lost = over("leaf1-spine0", false);
  EXPECT_THAT(cycles(6, is_lost, is_lost), IsEmpty());
}

TEST_F(VariantLocatorTest, SaysNothingOfPacketsThatAreLostNowAndThen) {
  cycles(10, never);
  int turn = 0;
  const IsLost is_lost = over("leaf1-spine0", false);
  for (int i = 0; i < 40; ++i)
    EXPECT_THAT(cycle([&](std::span<const std::uint32_t> path) {
                  return is_lost(path) && ++turn % 3 == 0;
                }),
                IsEmpty());
}

TEST_F(VariantLocatorTest, EndsSoonAfterTheRepair) {
  cycles(10, never);
  cycles(6, over("leaf1-spine0", false));
  active_ = found_;
  EXPECT_THAT(cycles(5, never), IsEmpty());
  EXPECT_TRUE(locator_->is_observed(active_[0]));
}

TEST_F(VariantLocatorTest, IsNotSureOfTheEndWhilePacketsTakeOtherPaths) {
  cycles(10, never);
  const IsLost is_lost = over("leaf1-spine0", false);
  cycles(6, is_lost);
  active_ = found_;
  is_planned_ = [&](std::span<const std::uint32_t> path) { return !is_lost(path); };
  cycles(30, never);
  EXPECT_FALSE(locator_->is_observed(active_[0]));
  // After a minute it is tried again.
  cycles(260, never);
  EXPECT_TRUE(locator_->is_observed(active_[0]));
}

TEST_F(VariantLocatorTest, TakesUpAfterALongSilence) {
  cycles(10, never);
  cycle_ += 100'000;
  EXPECT_THAT(cycles(10, never), IsEmpty());
  EXPECT_THAT(cycles(4, over("leaf1-spine0", false)),
              ElementsAre("link leaf1-spine0 from spine0 to leaf1"));
}

}  // namespace
}  // namespace regatta::diag
