// fabric/internal/flow_dependents.h: the flows that wait for a flow, and the error of flows that
// wait for each other.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// The dependents of each flow, by number.
class FlowDependents {
 public:
  explicit FlowDependents(const FlowGraph& traffic) : first_(traffic.flows().size() + 1, 0) {
    for (const FlowGraph::Dependency& wait : traffic.dependencies())
      ++first_[wait.before + 1];
    for (std::size_t flow = 1; flow < first_.size(); ++flow)
      first_[flow] += first_[flow - 1];
    dependents_.resize(traffic.dependencies().size());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const FlowGraph::Dependency& wait : traffic.dependencies())
      dependents_[next[wait.before]++] = wait.flow_and_after;
  }

  // Calls use(dependent, after) for each dependent of `flow`.
  template <typename Use>
  void for_each(std::uint32_t flow, Use&& use) const {
    for (std::uint32_t i = first_[flow]; i < first_[flow + 1]; ++i)
      use(dependents_[i] / 2, static_cast<After>(dependents_[i] % 2));
  }

  // Whether the dependents of `flow` + `shift` are those of `flow` with numbers `shift` higher.
  bool is_alike(std::uint32_t flow, std::uint32_t shift) const {
    const std::uint32_t count = first_[flow + 1] - first_[flow];
    const std::uint32_t other = first_[flow + shift];
    if (first_[flow + shift + 1] - other != count) return false;
    for (std::uint32_t i = 0; i < count; ++i)
      if (dependents_[first_[flow] + i] + 2 * shift != dependents_[other + i]) return false;
    return true;
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> dependents_;
};

// For how many flows each still waits when all flows that can start are done. Empty: all can start.
std::vector<std::uint32_t> unmet_dependencies(const FlowGraph& traffic);

// The error that flows wait for each other in a cycle. `pending_dependencies`: for how many flows
// each still waits when all others are done; at least one waits.
Error dependency_cycle_error(const FlowGraph& traffic,
                             const std::vector<std::uint32_t>& pending_dependencies);

}  // namespace regatta::fabric
