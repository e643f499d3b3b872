#include "regatta/platform/cluster_replay/node_events.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/cluster_replay/internal/random_draws.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::cluster_replay {
namespace {

using packing::RandomSequence;
using reliability::FailureEffect;
using reliability::FailureRate;
using reliability::kDay;

Error too_many_events() {
  return {Code::kInvalidInput,
          fmt::format("more than {} failures and returns of nodes would come; give fewer failures "
                      "a day, fewer nodes or a shorter time",
                      kNodeEventsMax)};
}

void sort_events(std::vector<NodeEvent>& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const NodeEvent& a, const NodeEvent& b) { return a.at < b.at; });
}

bool is_full(const std::vector<NodeEvent>& events) {
  return std::ssize(events) + 2 > kNodeEventsMax;
}

}  // namespace

Result<std::vector<NodeEvent>> generate_failures(const std::vector<sched::ClusterNode>& nodes,
                                                 const FailureShape& shape) {
  std::vector<NodeEvent> events;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const double own = at(nodes, node).failures_per_day;
    const double per_day = own > 0 ? own : shape.failures_per_day;
    if (per_day <= 0) continue;
    const double between = kDay.value / per_day;
    RandomSequence random(shape.seed * 1'000'003 + as_index(node));
    Seconds time{exponential(random, between)};
    while (time < shape.duration) {
      if (is_full(events)) return too_many_events();
      events.push_back({time, node, sched::NodeHealth::kFailed});
      time += {exponential(random, shape.repair.value)};
      events.push_back({time, node, sched::NodeHealth::kReady});
      time += {exponential(random, between)};
    }
  }
  sort_events(events);
  return events;
}

namespace {

// Failures a second of one device, by what they do.
struct EffectRates {
  FailureRate restart;
  FailureRate repair;
  FailureRate relapse;
};

EffectRates rates_of(const reliability::FailureMix& mix) {
  EffectRates rates{};
  for (const reliability::FailureCause& cause : mix.causes) {
    FailureRate& sum = cause.effect == FailureEffect::kRestart  ? rates.restart
                       : cause.effect == FailureEffect::kRepair ? rates.repair
                                                                : rates.relapse;
    sum += cause.per_device;
  }
  return rates;
}

// One node from the warm-up on; times are of the replay.
class NodeLife {
 public:
  NodeLife(const MixedFailures& shape, const EffectRates& rates, double lemon_factor, int devices,
           std::uint64_t seed)
      : shape_(shape),
        random_(seed),
        repair_spread_(std::sqrt(2 * std::log(shape.repair.mean / shape.repair.median))),
        own_(devices * lemon_factor * (rates.repair + rates.relapse)),
        restart_(devices * rates.restart),
        relapse_share_((rates.relapse + rates.repair).value > 0
                           ? rates.relapse / (rates.relapse + rates.repair)
                           : 0) {}

  // False where there are too many events.
  bool draw(int index, sched::ClusterNode& node, std::vector<NodeEvent>& events) {
    const Seconds begin = Seconds{0} - shape_.warm_up;
    node.watched_since = begin;
    for (Seconds time = begin;;) {
      const FailureRate usual = own_ + restart_;
      const FailureRate total =
          usual +
          (is_relapsing_ ? reliability::rate_of(1, shape_.repair.relapse_time) : FailureRate{});
      if (total.value <= 0) return true;
      time += {exponential(random_, 1 / total.value)};
      if (time >= shape_.duration) return true;
      // Failures of the warm-up are no events, and are bounded as well.
      if (is_full(events) || ++failures_ > kNodeEventsMax) return false;
      const double drawn = random_.uniform() * total.value;
      if (drawn < restart_.value) {
        add(time, time, true, index, node, events);
        continue;
      }
      const bool may_relapse = drawn >= usual.value || random_.uniform() < relapse_share_;
      is_relapsing_ = may_relapse && random_.uniform() < shape_.repair.relapse_share;
      const Seconds repaired = time + log_normal(random_, shape_.repair.median, repair_spread_);
      add(time, repaired, false, index, node, events);
      time = repaired;
    }
  }

 private:
  static void add(Seconds failed, Seconds back, bool is_planned, int index,
                  sched::ClusterNode& node, std::vector<NodeEvent>& events) {
    if (failed.value < 0) {
      if (!is_planned) node.failures.push_back(failed);
      if (back.value < 0 || is_planned) return;
      node.health = sched::NodeHealth::kFailed;
    } else {
      events.push_back({failed, index, sched::NodeHealth::kFailed, is_planned});
    }
    events.push_back({back, index, sched::NodeHealth::kReady, is_planned});
  }

  const MixedFailures& shape_;
  RandomSequence random_;
  double repair_spread_;  // of the logarithm
  FailureRate own_;
  FailureRate restart_;
  double relapse_share_;  // of the failures that lose the node: those whose repair may not hold
  bool is_relapsing_ = false;
  int failures_ = 0;
};

// Which nodes are lemons.
std::vector<char> draw_lemons(std::size_t nodes, const reliability::LemonNodes& lemons,
                              RandomSequence& random) {
  std::vector<std::size_t> order(nodes);
  for (std::size_t i = 0; i < nodes; ++i)
    order[i] = i;
  for (std::size_t i = nodes; i > 1; --i)
    std::swap(order[i - 1], order[random.below(i)]);
  std::vector<char> is_lemon(nodes, 0);
  const auto count =
      static_cast<std::size_t>(std::lround(lemons.share * static_cast<double>(nodes)));
  for (std::size_t i = 0; i < std::min(count, nodes); ++i)
    is_lemon[order[i]] = 1;
  return is_lemon;
}

}  // namespace

Result<DrawnFailures> draw_failures(std::vector<sched::ClusterNode> nodes,
                                    const MixedFailures& shape) {
  if (!(shape.mix.per_device().value > 0))
    return Error{Code::kInvalidInput, "failures: the mix has no rates; give causes with rates"};
  const EffectRates rates = rates_of(shape.mix);
  RandomSequence random(shape.seed);
  const std::vector<char> is_lemon = draw_lemons(nodes.size(), shape.lemons, random);
  const double usual = 1 / (1 - shape.lemons.share + shape.lemons.share * shape.lemons.factor);
  DrawnFailures drawn{.nodes = std::move(nodes), .events = {}};
  for (int i = 0; i < static_cast<int>(drawn.nodes.size()); ++i) {
    sched::ClusterNode& node = at(drawn.nodes, i);
    NodeLife life(shape, rates, at(is_lemon, i) != 0 ? usual * shape.lemons.factor : usual,
                  node.devices, shape.seed * 1'000'003 + as_index(i));
    if (!life.draw(i, node, drawn.events)) return too_many_events();
    const auto surplus = std::ssize(node.failures) - sched::kNodeFailuresMax;
    if (surplus > 0) node.failures.erase(node.failures.begin(), node.failures.begin() + surplus);
  }
  sort_events(drawn.events);
  return drawn;
}

}  // namespace regatta::cluster_replay
