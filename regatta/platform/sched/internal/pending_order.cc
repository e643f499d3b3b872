#include "regatta/platform/sched/internal/pending_order.h"

#include <algorithm>
#include <numeric>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/job_rank.h"

namespace regatta::sched {

std::vector<ResourceAmounts> queue_demands(const DecisionState& state) {
  const QuotaTree& tree = state.queue.quotas;
  std::vector<ResourceAmounts> demand(as_index(tree.size()));
  for (const int leaf : tree.leaves())
    at(demand, leaf) = state.usage.of_queue(leaf);
  for (const PendingJob& job : state.queue.jobs)
    at(demand, state.usage.leaf_of(state.accounts.at(&job.request))) +=
        amounts_wanted(state, job.request, smallest_size(job.request));
  for (ResourceAmounts& amounts : demand)
    for (std::size_t i = 0; i < amounts.of.size(); ++i)
      amounts.of[i] = std::min(amounts.of[i], state.capacity.of[i]);
  return demand;
}

PendingOrder::PendingOrder(const DecisionState& state)
    : state_(state), line_of_(state.queue.jobs.size()) {
  add_lines();
  std::vector<JobRank> ranks;
  for (int i = 0; i < static_cast<int>(state.queue.jobs.size()); ++i)
    ranks.push_back(rank_of(state.policy,
                            ranked_job(state.policy.order, at(state.queue.jobs, i).request,
                                       at(state.queue.jobs, i).completed),
                            state.snapshot.now, i));
  for (Line& line : lines_)
    std::sort(line.jobs.begin(), line.jobs.end(),
              [&](int a, int b) { return at(ranks, a) < at(ranks, b); });
  if (!state.policy.is_fair) return;
  std::vector<int> leaves;
  for (const int leaf : state.queue.quotas.leaves())
    if (at(line_of_leaf_, leaf) >= 0) leaves.push_back(leaf);
  shares_ = fair_shares(state.queue.quotas, queue_demands(state), state.capacity);
  order_.emplace(state.queue.quotas, shares_, state.usage, state.capacity, leaves);
}

void PendingOrder::add_lines() {
  const auto& jobs = state_.queue.jobs;
  if (!state_.policy.is_fair) {
    if (jobs.empty()) return;
    lines_.emplace_back();
    lines_[0].jobs.resize(jobs.size());
    std::iota(lines_[0].jobs.begin(), lines_[0].jobs.end(), 0);
    return;
  }
  line_of_leaf_.assign(as_index(state_.queue.quotas.size()), -1);
  for (int i = 0; i < static_cast<int>(jobs.size()); ++i) {
    const int leaf = state_.usage.leaf_of(state_.accounts.at(&at(jobs, i).request));
    int& line = at(line_of_leaf_, leaf);
    if (line < 0) {
      line = static_cast<int>(lines_.size());
      lines_.emplace_back();
    }
    at(lines_, line).jobs.push_back(i);
    at(line_of_, i) = line;
  }
}

// The line that is served next; -1 when all jobs have been considered.
int PendingOrder::first_line() {
  const auto has_jobs = [&](int line) {
    return at(lines_, line).next < at(lines_, line).jobs.size();
  };
  if (!order_) return !lines_.empty() && has_jobs(0) ? 0 : -1;
  for (int leaf = order_->next(); leaf >= 0; leaf = order_->next()) {
    if (has_jobs(at(line_of_leaf_, leaf))) return at(line_of_leaf_, leaf);
    order_->remove_next();
  }
  return -1;
}

int PendingOrder::next() {
  const int first = first_line();
  if (first < 0) return -1;
  Line& line = at(lines_, first);
  return line.jobs[line.next++];
}

void PendingOrder::reorder() {
  if (order_) order_->reorder();
}

std::vector<int> PendingOrder::close_line_of(int pending) {
  Line& line = at(lines_, at(line_of_, pending));
  std::vector<int> left(line.jobs.begin() + static_cast<std::ptrdiff_t>(line.next),
                        line.jobs.end());
  line.next = line.jobs.size();
  return left;
}

}  // namespace regatta::sched
