#include "regatta/network/probe/internal/simulation/simulation.h"

#include <map>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/probe/internal/simulation/scenario.h"
#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class Simulated : public testing::Test {
 protected:
  struct Sums {
    std::uint64_t sent = 0;
    std::uint64_t arrived = 0;
    std::uint64_t answered = 0;
    std::size_t reports = 0;
  };

  SimulatedFault fault(const std::string& text) const {
    const auto parsed = parse_fault(fabric_.graph, text);
    EXPECT_TRUE(parsed) << parsed.error().message;
    SimulatedFault one = *parsed;
    one.at = Seconds{0.5};
    return one;
  }

  // Sums over `seconds`, of the last word on each window.
  Sums run(std::vector<SimulatedFault> faults, double seconds, const SimulationOptions& options) {
    Simulation simulation(fabric_.graph, matrix_, std::move(faults), options);
    std::map<std::pair<diag::Window, int>, diag::ProbeReport> last;
    Sums sums;
    while (simulation.now().value < seconds)
      for (const diag::ProbeReport& report : simulation.next_window()) {
        last[{report.window, report.server.value}] = report;
        ++sums.reports;
      }
    for (const auto& [at, report] : last) {
      for (const diag::SentCount& one : report.sent) {
        sums.sent += one.sent;
        sums.answered += one.answered;
      }
      for (const diag::ArrivedCount& one : report.arrived)
        sums.arrived += one.arrived;
    }
    return sums;
  }

  const Fabric fabric_{{.servers = 6, .servers_per_leaf = 2, .spines = 2}};
  const Matrix matrix_ = plan_matrix(fabric_.graph, fabric_.routes, fabric_.seeds);
};

TEST_F(Simulated, TraceroutesEndWhereThePathIsBroken) {
  // The second link of some path, in its direction.
  std::uint32_t path = 0;
  while (matrix_.paths.links(path).size() < 4)
    ++path;
  const std::uint32_t bad = matrix_.paths.links(path)[1];
  SimulatedFault broken;
  broken.culprit = diag::link_culprit(fabric::directed_link(bad));
  broken.at = Seconds{0.5};
  Simulation simulation(fabric_.graph, matrix_, {broken}, {.noise = {}});
  const TraceOrder order{.path = path, .hops = 3, .tries = 4};
  simulation.next_window();
  const auto before = simulation.trace(order);
  ASSERT_TRUE(before);
  EXPECT_GT(before->at, simulation.now() + Seconds{0.1});
  for (const TraceHop& hop : before->trace.hops)
    EXPECT_EQ(hop.answered, 4);
  while (simulation.now() < Seconds{1})
    simulation.next_window();
  const auto after = simulation.trace(order);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->trace.hops[0].answered, 4);
  EXPECT_EQ(after->trace.hops[1].answered, 0);
  EXPECT_EQ(after->trace.hops[2].answered, 0);
  EXPECT_EQ(after->trace.hops[1].router, 0U);
}

TEST_F(Simulated, QuietServersAnswerEveryProbe) {
  const Sums sums = run({}, 3, {.noise = quiet()});
  EXPECT_GT(sums.sent, 250 * matrix_.probes.size());
  EXPECT_EQ(sums.sent, sums.answered);
  EXPECT_EQ(sums.sent, sums.arrived);
}

TEST_F(Simulated, ALossyNicLosesItsShareBothPaths) {
  const Sums healthy = run({}, 20, {.noise = quiet()});
  const Sums lossy = run({fault("nic s1.nic0 loss 50%")}, 20, {.noise = quiet()});
  // A third of the probes start or end there; there and back half is lost each.
  const double share = 1 - static_cast<double>(lossy.answered) / static_cast<double>(lossy.sent);
  EXPECT_NEAR(share, 0.75 / 3, 0.06);
  EXPECT_EQ(lossy.sent, healthy.sent);
}

TEST_F(Simulated, ADeadServerReportsNothing) {
  const Sums healthy = run({}, 4.5, {.noise = quiet()});
  const Sums dead = run({fault("server s1 dead")}, 4.5, {.noise = quiet()});
  EXPECT_LT(dead.reports, healthy.reports * 6 / 7);
}

TEST_F(Simulated, IsTheSameForASeed) {
  const auto once = [&](std::uint64_t seed) {
    return run({fault("switch spine0 loss 5%")}, 3, {.noise = busy(), .seed = seed}).answered;
  };
  EXPECT_EQ(once(3), once(3));
  EXPECT_NE(once(3), once(4));
}

TEST_F(Simulated, FaultsAreReadAsTheyAreWritten) {
  for (const char* text :
       {"link leaf0-spine1 from leaf0 loss 1%", "link leaf0-spine1 from spine1 some-flows",
        "link leaf2-spine0 both loss 100%", "nic s3.nic0 loss 5%", "switch spine0 some-flows",
        "link leaf2-spine0 both loss 100% of large", "switch spine0 some-flows of users",
        "server s2 dead", "cables leaf0-spine0 and leaf1-spine1 swapped",
        "address of s0.nic0 and s4.nic0 twice"})
    EXPECT_EQ(fault_text(fabric_.graph, fault(text)), text);
}

TEST_F(Simulated, FaultsThatCannotBeAreRefused) {
  const auto message = [&](const std::string& text) {
    const auto parsed = parse_fault(fabric_.graph, text);
    EXPECT_FALSE(parsed);
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_EQ(message("link leaf0-spine9 both loss 1%"), "link leaf0-spine9: is not in this network");
  EXPECT_EQ(message("link leaf0-spine1 from s1 loss 1%"), "link leaf0-spine1: does not end at s1");
  EXPECT_EQ(message("nic s1.nic0 loss 0%"), "loss 0%: must be above 0, to 100%");
  EXPECT_THAT(message("server s1 loss 5%"), HasSubstr("must end with \"dead\""));
  EXPECT_EQ(message("cables leaf0-spine0 and leaf0-spine0 swapped"),
            "leaf0-spine0 and leaf0-spine0: are not two of this network");
  EXPECT_THAT(message("cables leaf0-spine0 and leaf1-spine0 loss 5%"), HasSubstr("\"swapped\""));
  EXPECT_THAT(message("address s0.nic0 and s1.nic0 twice"), HasSubstr("is of two NICs"));
  EXPECT_EQ(message("cat s1 dead"), "cat: is no link, nic, switch or server");
}

TEST(Scenarios, AreALineEach) {
  const auto all = parse_scenarios(
      "# what\n\none tiny 7 busy nic s0.nic0 loss 1%; server s1 dead\n"
      "two tiny 8 quiet none 30min\n",
      "x.txt");
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_THAT(*all, SizeIs(2));
  EXPECT_TRUE((*all)[0].is_busy);
  EXPECT_THAT((*all)[0].faults, testing::ElementsAre("nic s0.nic0 loss 1%", "server s1 dead"));
  EXPECT_DOUBLE_EQ((*all)[1].lasts.value, 1800);
}

TEST(Scenarios, ThatAreNoneAreRefusedByLine) {
  const auto message = [](const std::string& text) {
    const auto all = parse_scenarios(text, "x.txt");
    EXPECT_FALSE(all);
    return all ? "" : all.error().message;
  };
  EXPECT_THAT(message("\none tiny 7 loud nic s0.nic0 loss 1%"), HasSubstr("x.txt:2: write NAME"));
  EXPECT_EQ(message("one tiny x7 busy nic s0.nic0 loss 1%"),
            "x.txt:1: seed x7: must be a whole number");
  EXPECT_THAT(message("one tiny 7 busy none"), HasSubstr("x.txt:1: "));
}

}  // namespace
}  // namespace regatta::probe
