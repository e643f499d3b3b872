#include "regatta/network/probe/internal/simulation/repair_scenario.h"

#include <gmock/gmock.h>

#include "regatta/network/diag/locator.h"
#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::IsEmpty;

class RepairOf : public testing::Test {
 protected:
  SimulatedFault fault(const std::string& text) const {
    const auto parsed = parse_fault(fabric_.graph, text);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return *parsed;
  }

  const Fabric fabric_{{.servers = 6, .servers_per_leaf = 2, .spines = 3}};
  const Matrix matrix_ = plan_matrix(fabric_.graph, fabric_.routes, fabric_.seeds);
};

// Windows from before a repair and after it, taken together, look like a loss elsewhere.
TEST_F(RepairOf, ABlackHoleLeavesNobodyToBlame) {
  for (const char* const text :
       {"link leaf0-spine1 from leaf0 some-flows", "link leaf1-spine0 from spine0 some-flows",
        "switch spine2 some-flows", "link leaf2-spine1 both loss 100%", "switch spine0 loss 100%"})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SimulationOptions options;
      options.seed = seed;
      options.noise = seed % 2 == 0 ? busy() : quiet();
      const RepairOutcome outcome = try_repair(fabric_.graph, matrix_, fault(text), options);
      EXPECT_TRUE(outcome.is_named) << text << ", seed " << seed;
      EXPECT_THAT(outcome.blamed, IsEmpty())
          << text << ", seed " << seed << ": " << to_string(fabric_.graph, outcome.blamed[0]);
      EXPECT_GE(outcome.over_after.value, 0) << text << ", seed " << seed;
    }
}

TEST_F(RepairOf, AHeavyLossLeavesNobodyToBlame) {
  const Fabric two_leaves{{.servers = 4, .servers_per_leaf = 2, .spines = 2}};
  const Matrix matrix = plan_matrix(two_leaves.graph, two_leaves.routes, two_leaves.seeds);
  for (const char* const text :
       {"link leaf0-spine1 both loss 30%", "link leaf1-spine0 from spine0 loss 50%",
        "switch spine1 loss 20%"})
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const SimulationOptions options{.noise = seed % 2 == 0 ? busy() : quiet(), .seed = seed};
      const auto broken = parse_fault(two_leaves.graph, text);
      ASSERT_TRUE(broken) << broken.error().message;
      const RepairOutcome outcome = try_repair(two_leaves.graph, matrix, *broken, options);
      EXPECT_THAT(outcome.blamed, IsEmpty())
          << text << ", seed " << seed << ": " << to_string(two_leaves.graph, outcome.blamed[0]);
      // Probes of two leaves do not tell a direction of one uplink from one of the other.
      if (outcome.is_named) {
        EXPECT_GE(outcome.over_after.value, 0) << text << ", seed " << seed;
      }
    }
}

// Taken together they look much like a leaf that loses some flows.
TEST_F(RepairOf, ThreeDeadLinksStayNamedAsLongAsTheyAreDead) {
  std::vector<SimulatedFault> broken;
  std::vector<diag::Culprit> truth;
  for (const char* const link : {"leaf0-spine0", "leaf0-spine1", "leaf1-spine2"}) {
    broken.push_back(fault(std::string("link ") + link + " both loss 100%"));
    broken.back().at = Seconds{1};
    truth.push_back(broken.back().culprit);
  }
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Simulation simulation(fabric_.graph, matrix_, broken, {.noise = quiet(), .seed = seed});
    diag::Locator locator(fabric_.graph, matrix_.paths);
    while (simulation.now() < Seconds{9}) {
      simulate_window(simulation, locator);
      locator.locate(simulation.now());
      if (simulation.now() < Seconds{2}) continue;
      std::vector<diag::Culprit> named;
      for (const diag::FaultVerdict& verdict : locator.active_faults())
        named.push_back(verdict.culprit);
      ASSERT_THAT(named, testing::UnorderedElementsAreArray(truth))
          << "seed " << seed << " at " << simulation.now().value;
    }
  }
}

// Nobody has seen it healthy.
TEST_F(RepairOf, AFaultIsNotOverBecauseTheServersBelowItFallSilent) {
  SimulatedFault broken = fault("link leaf0-spine1 both loss 100%");
  broken.at = Seconds{1};
  Simulation simulation(fabric_.graph, matrix_, {broken}, {.noise = quiet()});
  diag::Locator locator(fabric_.graph, matrix_.paths);
  const auto is_held = [&] {
    return std::ranges::any_of(locator.active_faults(), [&](const diag::FaultVerdict& verdict) {
      return verdict.culprit == broken.culprit;
    });
  };
  while (simulation.now() < Seconds{8}) {
    const bool are_silent = simulation.now() > Seconds{3};
    for (const diag::ProbeReport& report : simulation.next_window())
      if (!are_silent || report.server.value > 1) locator.add(report);
    locator.locate(simulation.now());
    if (simulation.now() > Seconds{2}) {
      EXPECT_TRUE(is_held()) << simulation.now().value;
    }
  }
}

}  // namespace
}  // namespace regatta::probe
