#include "regatta/network/probe/internal/simulation/simulated_traces.h"

#include <utility>
#include <variant>

#include "regatta/base/core/result.h"

namespace regatta::probe {

void SimulatedTraces::go_on(Simulation& simulation, diag::Locator& locator) {
  const Seconds now = simulation.now();
  for (const EvidenceRequest& one : evidence_collector_.due_requests(
           locator.lossy(), locator.active_faults(), locator.unconfirmed(), now)) {
    const auto* const order = std::get_if<TraceOrder>(&one.order);
    if (order == nullptr) continue;
    if (auto answer = simulation.trace(*order)) coming_.emplace(answer->at, std::move(*answer));
  }
  const auto end = coming_.upper_bound(now);
  for (auto at = coming_.begin(); at != end; ++at) {
    const Trace& trace = at->second.trace;
    const auto counts =
        evidence_collector_.accept(evidence_collector_.server_of(trace.path), trace, now);
    REGATTA_CHECK(counts.has_value());
    for (const diag::PassiveCount& count : *counts)
      locator.add(count);
  }
  coming_.erase(coming_.begin(), end);
}

}  // namespace regatta::probe
