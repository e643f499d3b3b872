#include "regatta/network/probe/internal/simulation/repair_scenario.h"

#include <algorithm>
#include <optional>
#include <random>

#include "regatta/network/diag/locator.h"

namespace regatta::probe {

RepairOutcome try_repair(const topo::Graph& graph, const Matrix& matrix, SimulatedFault fault,
                         const SimulationOptions& options, const Planned* planned) {
  constexpr Seconds kWatched{6};
  std::mt19937_64 random(options.seed);
  std::uniform_real_distribution<double> even(0, 1);
  fault.at = Seconds{2.5 + 0.1 * even(random)};
  fault.until = fault.at + Seconds{2 + 2 * even(random)};
  Simulation simulation(graph, matrix, {fault}, options);
  diag::Locator locator(graph, matrix.paths,
                        diag::options_for(options.period, planned != nullptr ? kDoubt : Seconds{}));
  std::optional<SimulatedTraces> traces;
  if (planned != nullptr) traces.emplace(graph, *planned, matrix);
  RepairOutcome outcome;
  while (simulation.now() < fault.until + kWatched) {
    simulate_window(simulation, locator);
    if (traces) traces->go_on(simulation, locator);
    const diag::FaultChanges changes = locator.locate(simulation.now());
    const bool is_repaired = simulation.now() > fault.until;
    for (const diag::FaultVerdict& verdict : changes.begun) {
      if (!diag::is_fault(verdict)) continue;
      if (!is_repaired && verdict.culprit == fault.culprit) outcome.is_named = true;
      if (is_repaired) outcome.blamed.push_back(verdict);
    }
    for (const diag::FaultVerdict& verdict : changes.over)
      if (is_repaired && verdict.culprit == fault.culprit)
        outcome.over_after = simulation.now() - fault.until;
  }
  return outcome;
}

}  // namespace regatta::probe
