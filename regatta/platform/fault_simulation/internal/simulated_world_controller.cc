// The process of the controller: it commits, decides and answers, and may be killed at any event.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/control/scheduling_view.h"
#include "regatta/platform/fault_simulation/internal/simulated_world.h"
#include "regatta/platform/sched/decide.h"

namespace regatta::fault_simulation {
namespace {

constexpr Seconds kRestart{2.0};
constexpr Seconds kDecisionTime{0.05};
constexpr std::size_t kDepth = 1000;

}  // namespace

void SimulatedWorld::start_controller() {
  control::ClusterTables tables;
  for (const auto& [key, record] : store_) {
    const Status status = load_record(
        {.key = key, .revision = record.revision, .value = record.value}, events_.now(), tables);
    if (!status) return fail(status.error().message);
  }
  if (const Status status = finish_loading(stored_revision_, tables); !status)
    return fail(status.error().message);
  control::ControllerOptions options;
  if (options_.planted == PlantedError::kExtensionIgnored) options.restart_lease = Seconds{1};
  controller_.core.emplace(options, std::move(tables));
  ++controller_.incarnation;
  controller_.durable = stored_revision_;
  controller_.uncommitted = {};
  controller_.committing = {};
  controller_.is_committing = false;
  controller_.is_deciding = false;
  controller_.needs_decision = true;
}

// Agents that are reached keep their replicas until the next controller is there.
void SimulatedWorld::restart_controller() {
  if (!controller_.core) return;
  ++result_.controller_restarts;
  --result_.controller_kills;
  for (SimulatedNode& node : nodes_) {
    wake(node);
    if (!node.is_connected || !is_reachable(node)) continue;
    node.agent->keep_until(node.agent->last_contact() + control::ControllerOptions{}.restart_lease);
    node.kept_until = node.agent->kept_until();
  }
  kill_controller();
}

void SimulatedWorld::kill_controller() {
  if (!controller_.core) return;
  ++result_.controller_kills;
  // The commit under way reaches the disk or does not; nobody hears of it.
  if (controller_.is_committing && random_.uniform() < 0.5) {
    for (const store::Change& change : controller_.committing.changes) {
      store_[change.key] = {change.revision, *change.value};
      stored_revision_ = change.revision;
    }
  }
  controller_.core.reset();
  ++controller_.incarnation;
  for (SimulatedNode& node : nodes_) {
    wake(node);
    ++node.session;
    node.is_connected = false;
  }
  events_.add(events_.now() + kRestart, [this] { start_controller(); });
}

void SimulatedWorld::flush_controller() {
  control::Effects effects = controller_.core->take_effects();
  controller_.needs_decision |= effects.needs_decision;
  control::Effects& waiting = controller_.uncommitted;
  std::move(effects.changes.begin(), effects.changes.end(), std::back_inserter(waiting.changes));
  waiting.nodes.insert(waiting.nodes.end(), effects.nodes.begin(), effects.nodes.end());
  if (options_.planted == PlantedError::kOrderTooEarly)
    for (const int node : effects.nodes)
      send_orders(node_numbers_.at(at(controller_.core->tables().nodes, node).facts.name),
                  controller_.core->orders_for(node, controller_.core->tables().last_revision));
  commit_next();
}

void SimulatedWorld::commit_next() {
  const control::Effects& waiting = controller_.uncommitted;
  if (controller_.is_committing || (waiting.changes.empty() && waiting.nodes.empty())) return;
  controller_.is_committing = true;
  controller_.committing = std::exchange(controller_.uncommitted, {});
  const int incarnation = controller_.incarnation;
  events_.add(events_.now() + options_.commit_time, [this, incarnation] {
    if (controller_.incarnation != incarnation) return;
    const control::Effects effects = std::exchange(controller_.committing, {});
    controller_.is_committing = false;
    for (const store::Change& change : effects.changes) {
      store_[change.key] = {change.revision, *change.value};
      controller_.durable = stored_revision_ = change.revision;
    }
    for (const int node : effects.nodes) {
      // The controller numbers its nodes anew at each start.
      const std::string& name = at(controller_.core->tables().nodes, node).facts.name;
      send_orders(node_numbers_.at(name), controller_.core->orders_for(node, controller_.durable));
    }
    commit_next();
  });
}

void SimulatedWorld::decide_if_needed() {
  if (!controller_.core || controller_.is_deciding || !controller_.needs_decision ||
      events_.now() < next_decision_)
    return;
  next_decision_ = events_.now() + options_.decision_interval;
  controller_.is_deciding = true;
  controller_.needs_decision = false;
  const control::SchedulingView view =
      scheduling_view(controller_.core->tables(), events_.now(), kDepth);
  auto decision = sched::decide(view.snapshot, view.queue, policy_);
  if (!decision) return fail(decision.error().message);
  const int incarnation = controller_.incarnation;
  events_.add(events_.now() + kDecisionTime, [this, incarnation, decision = std::move(*decision)] {
    if (controller_.incarnation != incarnation) return;
    const control::CarriedOut done = carry_out(decision, *controller_.core, moment());
    controller_.is_deciding = false;
    controller_.needs_decision |= done.outdated > 0;
    flush_controller();
  });
}

void SimulatedWorld::send_orders(int index, const std::vector<control::ReplicaOrder>& orders) {
  SimulatedNode& node = at(nodes_, index);
  if (!node.is_connected || orders.empty() || !is_reachable(node)) return;
  node.last_to_node = std::max(node.last_to_node,
                               events_.now() + Seconds{exponential(options_.message_time.value)});
  const int copies = random_.uniform() < options_.faults.double_sends ? 2 : 1;
  for (int copy = 0; copy < copies; ++copy) {
    events_.add(node.last_to_node, [this, index, orders, session = node.session] {
      SimulatedNode& receiver = at(nodes_, index);
      if (receiver.session != session || !receiver.agent || !is_reachable(receiver)) return;
      wake(receiver);
      for (control::ReplicaOrder order : orders) {
        if (options_.planted == PlantedError::kLeaseForgotten) order.lease = {};
        if (options_.planted == PlantedError::kFenceTooEarly) order.lease = order.lease * 3;
        receiver.agent->obey(order, events_.now());
      }
      act(index);
    });
  }
}

}  // namespace regatta::fault_simulation
