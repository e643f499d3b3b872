#include "regatta/network/fabric/internal/flow_dependents.h"

#include <fmt/core.h>

namespace regatta::fabric {

std::vector<std::uint32_t> unmet_dependencies(const FlowGraph& traffic) {
  const FlowDependents dependents(traffic);
  std::vector<std::uint32_t> pending_dependencies;
  std::vector<std::uint32_t> free;
  for (const FlowGraph::Flow& flow : traffic.flows())
    pending_dependencies.push_back(flow.pending_dependencies);
  for (std::uint32_t flow = 0; flow < pending_dependencies.size(); ++flow)
    if (pending_dependencies[flow] == 0) free.push_back(flow);
  for (std::size_t i = 0; i < free.size(); ++i)
    dependents.for_each(free[i], [&](std::uint32_t next, After) {
      if (--pending_dependencies[next] == 0) free.push_back(next);
    });
  if (free.size() == pending_dependencies.size()) pending_dependencies.clear();
  return pending_dependencies;
}

Error dependency_cycle_error(const FlowGraph& traffic,
                             const std::vector<std::uint32_t>& pending_dependencies) {
  std::vector<std::uint32_t> waits_on(pending_dependencies.size(), 0);
  for (const FlowGraph::Dependency& wait : traffic.dependencies())
    if (pending_dependencies[wait.before] != 0) waits_on[wait.flow_and_after / 2] = wait.before;
  std::vector<bool> is_seen(pending_dependencies.size(), false);
  std::uint32_t flow = 0;
  while (pending_dependencies[flow] == 0)
    ++flow;
  // Follows each flow to one that it waits for, until a flow comes again.
  for (; !is_seen[flow]; flow = waits_on[flow])
    is_seen[flow] = true;
  return {Code::kInvalidInput,
          fmt::format("flow {} waits for itself, through others or directly; remove one of the "
                      "waits of that circle",
                      flow)};
}

}  // namespace regatta::fabric
