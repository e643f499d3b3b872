// Faults of large packets and of users' packets: found while all probes get through, and over after
// their repair.
#include <algorithm>

#include <gmock/gmock.h>

#include "regatta/network/diag/locator.h"
#include "regatta/network/probe/internal/simulation/repair_scenario.h"
#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::IsEmpty;

class FaultOfAVariant : public testing::Test {
 protected:
  SimulatedFault fault(const std::string& text) const {
    const auto parsed = parse_fault(fabric_.graph, text);
    EXPECT_TRUE(parsed) << parsed.error().message;
    return *parsed;
  }
  static SimulationOptions options(std::uint64_t seed) {
    return {.noise = seed % 2 == 0 ? busy() : quiet(), .seed = seed};
  }

  const Fabric fabric_{{.servers = 6, .servers_per_leaf = 2, .spines = 3}};
  const Matrix matrix_ = plan_matrix(fabric_.graph, fabric_.routes, fabric_.seeds);
};

TEST_F(FaultOfAVariant, IsNamedAndOverAfterItsRepair) {
  for (const char* const text :
       {"link leaf0-spine1 from leaf0 loss 100% of large",
        "link leaf1-spine0 both loss 100% of large", "nic s3.nic0 loss 100% of large",
        "switch spine2 loss 100% of users", "link leaf0-spine2 from spine2 loss 100% of users",
        "switch leaf1 some-flows of users"})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      const RepairOutcome outcome = try_repair(fabric_.graph, matrix_, fault(text), options(seed));
      EXPECT_TRUE(outcome.is_named) << text << ", seed " << seed;
      EXPECT_THAT(outcome.blamed, IsEmpty())
          << text << ", seed " << seed << ": " << to_string(fabric_.graph, outcome.blamed[0]);
      EXPECT_GE(outcome.over_after.value, 0) << text << ", seed " << seed;
    }
}

TEST_F(FaultOfAVariant, IsNamedForWhatItIsAndNothingElse) {
  SimulatedFault broken = fault("link leaf0-spine1 both loss 100% of users");
  broken.at = Seconds{2};
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Simulation simulation(fabric_.graph, matrix_, {broken}, options(seed));
    diag::Locator locator(fabric_.graph, matrix_.paths);
    while (simulation.now() < Seconds{20}) {
      simulate_window(simulation, locator);
      for (const diag::FaultVerdict& verdict : locator.locate(simulation.now()).begun) {
        if (!diag::is_fault(verdict)) continue;
        EXPECT_EQ(verdict.culprit, broken.culprit) << to_string(fabric_.graph, verdict);
        EXPECT_EQ(verdict.symptom, diag::Symptom::kUserPackets);
        EXPECT_LT(simulation.now(), Seconds{4});
      }
    }
    EXPECT_EQ(std::ranges::count_if(locator.active_faults(), diag::is_fault), 1) << "seed " << seed;
  }
}

TEST_F(FaultOfAVariant, IsNotSeenInWhatAFaultOfAllPacketsLoses) {
  for (const char* const text :
       {"link leaf0-spine1 both loss 100%", "link leaf0-spine1 from leaf0 loss 5%",
        "switch spine0 some-flows", "switch spine0 loss 1%", "server s2 dead"})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SimulatedFault broken = fault(text);
      broken.at = Seconds{2};
      Simulation simulation(fabric_.graph, matrix_, {broken}, options(seed));
      diag::Locator locator(fabric_.graph, matrix_.paths);
      while (simulation.now() < Seconds{8}) {
        simulate_window(simulation, locator);
        for (const diag::FaultVerdict& verdict : locator.locate(simulation.now()).begun)
          EXPECT_FALSE(diag::is_of_variant(verdict.symptom))
              << text << ", seed " << seed << ": " << to_string(fabric_.graph, verdict);
      }
    }
}

// A healer leads users' packets around the fault: nobody sees its end, so it is tried again after a
// minute, and found again if it lasts.
TEST_F(FaultOfAVariant, OfUsersIsTriedAgainWhereAHealerLeadsThemAround) {
  SimulatedFault broken = fault("link leaf0-spine1 both loss 100% of users");
  broken.at = Seconds{2};
  broken.until = Seconds{6};  // from then on its packets take other paths
  Simulation simulation(fabric_.graph, matrix_, {broken}, {.noise = quiet()});
  diag::LocatorOptions healed;
  healed.is_healed = true;
  diag::Locator locator(fabric_.graph, matrix_.paths, healed);
  Seconds over;
  while (simulation.now() < Seconds{90}) {
    simulate_window(simulation, locator);
    const diag::FaultChanges changes = locator.locate(simulation.now());
    if (!changes.over.empty()) over = simulation.now();
  }
  EXPECT_GT(over, Seconds{60});
  EXPECT_LT(over, Seconds{80});
}

}  // namespace
}  // namespace regatta::probe
