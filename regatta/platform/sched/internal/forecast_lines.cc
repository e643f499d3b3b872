#include "regatta/platform/sched/internal/forecast_lines.h"

#include <algorithm>
#include <cmath>

#include "regatta/base/core/ids.h"

namespace regatta::sched {

ForecastLines::ForecastLines(const ForecastInput& input, const QuotaUsage& usage)
    : input_(input), usage_(usage), kinds_(input.kinds.size()) {
  lines_.resize(input.policy.is_fair ? as_index(input.quotas->size()) : 1);
  for (int kind = 0; kind < static_cast<int>(kinds_.size()); ++kind) {
    at(lines_, line_of(kind)).kinds.push_back(kind);
    at(kinds_, kind).cursor = at(kinds_, kind).jobs.end();
  }
}

int ForecastLines::line_of(int kind) const {
  return input_.policy.is_fair ? at(input_.kinds, kind).leaf : 0;
}

void ForecastLines::add(const ForecastJob& job, int index, double now) {
  if (as_index(index) >= waiting_.size()) waiting_.resize(as_index(index) + 1);
  Waiting& entry = at(waiting_, index);
  entry.job = ranked_job(input_.policy.order, *job.request, {job.elapsed});
  entry.job.submitted = {job.submitted};
  entry.kind = job.kind;
  entry.rank = rank_of(input_.policy, entry.job, {now}, index);
  at(kinds_, job.kind).jobs.insert(entry.rank);
  const double step = input_.policy.ageing.value;
  if (step > 0)
    ageing_.emplace(now + step - std::fmod(std::max(0.0, now - job.submitted), step), index);
}

void ForecastLines::remove(int index) {
  Waiting& entry = at(waiting_, index);
  Kind& kind = at(kinds_, entry.kind);
  const auto found = kind.jobs.find(entry.rank);
  const bool is_next = found == kind.cursor;
  const auto after = kind.jobs.erase(found);
  if (is_next) kind.cursor = after;
  entry.kind = -1;
}

void ForecastLines::age_until(double now) {
  while (!ageing_.empty() && ageing_.top().first <= now) {
    const auto [time, index] = ageing_.top();
    ageing_.pop();
    Waiting& entry = at(waiting_, index);
    if (entry.kind < 0) continue;
    std::set<JobRank>& jobs = at(kinds_, entry.kind).jobs;
    jobs.erase(entry.rank);
    entry.rank = rank_of(input_.policy, entry.job, {now}, index);
    jobs.insert(entry.rank);
    ageing_.emplace(time + input_.policy.ageing.value, index);
  }
}

void ForecastLines::begin_decision(double now) {
  age_until(now);
  for (Kind& kind : kinds_) {
    kind.cursor = kind.jobs.begin();
    kind.is_closed = false;
  }
  if (!input_.policy.is_fair) return;
  std::vector<int> leaves;
  for (const int leaf : input_.quotas->leaves()) {
    const auto& kinds = at(lines_, leaf).kinds;
    if (std::any_of(kinds.begin(), kinds.end(),
                    [&](int kind) { return !at(kinds_, kind).jobs.empty(); }))
      leaves.push_back(leaf);
  }
  order_.emplace(*input_.quotas, input_.shares, usage_, input_.capacity, leaves);
}

int ForecastLines::first_of_line(int line) const {
  int best = -1;
  for (const int kind : at(lines_, line).kinds) {
    const Kind& entry = at(kinds_, kind);
    if (entry.is_closed || entry.cursor == entry.jobs.end()) continue;
    if (best < 0 || *entry.cursor < *at(kinds_, best).cursor) best = kind;
  }
  return best;
}

int ForecastLines::next() {
  int kind = -1;
  if (!order_) {
    kind = first_of_line(0);
  } else {
    for (int leaf = order_->next(); leaf >= 0 && kind < 0; leaf = order_->next()) {
      kind = first_of_line(leaf);
      if (kind >= 0) break;
      order_->remove_next();
    }
  }
  return kind < 0 ? -1 : (at(kinds_, kind).cursor++)->index;
}

void ForecastLines::close_kind(int kind) {
  at(kinds_, kind).is_closed = true;
}

void ForecastLines::close_line(int kind) {
  for (const int other : at(lines_, line_of(kind)).kinds)
    close_kind(other);
}

void ForecastLines::reopen() {
  for (Kind& kind : kinds_)
    kind.is_closed = false;
  if (order_) order_->reorder();
}

}  // namespace regatta::sched
