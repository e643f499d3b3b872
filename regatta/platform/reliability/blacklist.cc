#include "regatta/platform/reliability/blacklist.h"

#include <algorithm>

#include "regatta/base/core/ids.h"

namespace regatta::reliability {

bool is_worth_keeping(const NodeHistory& node, const KeepingTerms& terms) {
  const FailureRate rate = updated(terms.prior, node).mean();
  // The node that would take its place fails too, at the rate of a node without a history.
  const double more = std::max(0.0, (rate - terms.prior.mean()) * terms.horizon);
  return more * terms.failure_cost <= wait_for_lack_of_one(terms.pool, terms.spares, terms.horizon);
}

std::vector<int> nodes_to_avoid(std::span<const NodeHistory> nodes, KeepingTerms terms) {
  std::vector<int> failed_again;
  for (int i = 0; i < static_cast<int>(std::ssize(nodes)); ++i)
    if (at(nodes, i).failures >= kFailsAgain) failed_again.push_back(i);
  const auto rate_of_node = [&](int node) {
    return updated(terms.prior, at(nodes, node)).mean().value;
  };
  std::stable_sort(failed_again.begin(), failed_again.end(),
                   [&](int a, int b) { return rate_of_node(a) > rate_of_node(b); });
  std::vector<int> avoided;
  for (const int node : failed_again) {
    if (is_worth_keeping(at(nodes, node), terms)) break;
    avoided.push_back(node);
    --terms.spares;
  }
  return avoided;
}

}  // namespace regatta::reliability
