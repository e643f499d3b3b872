#include "regatta/platform/reliability/internal/node_pool.h"

#include <algorithm>
#include <cmath>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/stats.h"
#include "regatta/platform/reliability/blacklist.h"
#include "regatta/platform/reliability/internal/random_times.h"

namespace regatta::reliability {

NodePool::NodePool(const GangOptions& options, std::uint64_t seed)
    : options_(options), random_(splitmix(seed + 1)), repair_random_(splitmix(seed + 2)) {
  FailureRate repaired{};
  FailureRate relapsing{};
  for (const FailureCause& cause : options.mix.causes) {
    if (cause.effect == FailureEffect::kRepair) repaired += cause.per_device;
    if (cause.effect == FailureEffect::kRelapse) relapsing += cause.per_device;
  }
  const FailureRate per_node = options.devices_per_node * (repaired + relapsing);
  relapse_cause_share_ = per_node.value > 0 ? relapsing / (repaired + relapsing) : 0;
  const LemonNodes& lemons = options.lemons;
  const FailureRate usual = per_node / (1 - lemons.share + lemons.share * lemons.factor);
  const int count = options.nodes + options.spares;
  nodes_.resize(as_index(count), PooledNode{usual, false, {}, {}});
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    order.push_back(i);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random_.below(i)]);
  const auto lemon_count = static_cast<std::size_t>(std::lround(lemons.share * count));
  for (std::size_t i = 0; i < lemon_count; ++i)
    nodes_[order[i]].rate = usual * lemons.factor;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    (std::ssize(job_) < options.nodes ? job_ : spares_).push_back(i);
  sum_hazard();
}

FailureRate NodePool::rate_of_node(std::size_t node) const {
  const PooledNode& one = nodes_[node];
  return one.rate + (one.is_relapsing ? rate_of(1, options_.repair.relapse_time) : FailureRate{});
}

void NodePool::sum_hazard() {
  hazard_ = {};
  if (missing_ > 0) return;
  for (const std::size_t node : job_)
    hazard_ += rate_of_node(node);
}

bool NodePool::lose_node(Seconds now) {
  double drawn = random_.uniform() * hazard_.value;
  std::size_t place = 0;
  while (place + 1 < job_.size() && drawn >= rate_of_node(job_[place]).value)
    drawn -= rate_of_node(job_[place++]).value;
  const std::size_t id = job_[place];
  PooledNode& node = nodes_[id];
  // The part of the hazard that is its own comes first, then that of a repair that did not hold.
  const bool was_relapse = node.is_relapsing && drawn >= node.rate.value;
  const bool may_relapse = was_relapse || random_.uniform() < relapse_cause_share_;
  node.history.failures += 1;
  node.history.exposure += now - node.joined;
  node.is_relapsing = may_relapse && repair_random_.uniform() < options_.repair.relapse_share;
  const Seconds repair =
      lognormal_time(repair_random_, options_.repair.median, options_.repair.mean);
  repairs_.emplace((now + repair).value, id);
  job_.erase(job_.begin() + static_cast<std::ptrdiff_t>(place));
  ++missing_;
  fill_places(now);
  return was_relapse;
}

void NodePool::fill_places(Seconds now) {
  while (missing_ > 0 && !spares_.empty()) {
    auto chosen = spares_.begin();
    if (options_.weigh_risk)
      chosen = std::min_element(spares_.begin(), spares_.end(), [&](std::size_t a, std::size_t b) {
        return updated(options_.prior, nodes_[a].history).mean() <
               updated(options_.prior, nodes_[b].history).mean();
      });
    nodes_[*chosen].joined = now;
    job_.push_back(*chosen);
    spares_.erase(chosen);
    --missing_;
    ++spares_used_;
  }
  sum_hazard();
}

Seconds NodePool::next_return() const {
  return repairs_.empty() ? options_.warm_up + options_.horizon : Seconds{repairs_.top().first};
}

bool NodePool::keeps(const PooledNode& node, Seconds now, Seconds failure_cost) const {
  return is_worth_keeping(
      node.history, {.prior = options_.prior,
                     .pool = {.nodes = options_.nodes,
                              .node_loss = options_.nodes * options_.prior.mean(),
                              .repair = options_.repair.mean},
                     .spares = static_cast<int>(nodes_.size()) - blacklisted_ - options_.nodes,
                     .horizon = options_.warm_up + options_.horizon - now,
                     .failure_cost = failure_cost});
}

void NodePool::take_back(Seconds now, Seconds failure_cost) {
  while (!repairs_.empty() && repairs_.top().first <= now.value) {
    const std::size_t id = repairs_.top().second;
    repairs_.pop();
    if (options_.weigh_risk && !keeps(nodes_[id], now, failure_cost))
      ++blacklisted_;
    else
      spares_.push_back(id);
  }
  fill_places(now);
}

}  // namespace regatta::reliability
