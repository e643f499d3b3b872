// Servers: agents that may be killed at any event, the processes that they start, and their links.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/fault_simulation/internal/simulated_world.h"

namespace regatta::fault_simulation {
namespace {

constexpr Seconds kSweepInterval{1.0};
constexpr Seconds kAgentRestart{1.0};
constexpr Seconds kStopTime{3.0};  // mean, of processes that get SIGTERM
constexpr int kTerminated = 143;
constexpr int kKilled = 137;
constexpr int kKilledSignal = 9;
constexpr double kKillAfterJournal = 0.01;  // where agents are killed at all
constexpr Seconds kOrdersAgain{10.0};

}  // namespace

bool SimulatedWorld::is_reachable(const SimulatedNode& node) const {
  return controller_.core.has_value() && node.agent.has_value() &&
         events_.now() >= node.partitioned_until;
}

// The agent knows again what the sweeps have done in its place.
void SimulatedWorld::wake(SimulatedNode& node) {
  if (!std::exchange(node.is_quiet, false)) return;
  node.agent->answered(last_sweep_);
  node.last_contact = node.agent->last_contact();
}

void SimulatedWorld::start_agent(int index) {
  SimulatedNode& node = at(nodes_, index);
  if (node.agent) return;
  if (options_.planted == PlantedError::kJournalLost) node.journal.clear();
  node.agent.emplace(control::ControllerOptions{}.lease, node.journal,
                     node.last_contact.value_or(events_.now()));
  node.agent->keep_until(node.kept_until);
  for (const control::ReplicaKey& key : node.agent->started()) {
    if (node.processes.contains(key)) continue;
    const auto exit = node.exits.find(key);
    if (exit != node.exits.end())
      node.agent->ended(key, exit->second, 0, false);
    else
      node.agent->ended(key, kKilled, 0, true);
  }
  act(index);
}

void SimulatedWorld::kill_agent(int index) {
  SimulatedNode& node = at(nodes_, index);
  if (!node.agent) return;
  ++result_.agent_kills;
  wake(node);
  node.agent.reset();
  cut(index);
  events_.add(events_.now() + kAgentRestart, [this, index] { start_agent(index); });
}

void SimulatedWorld::reboot(int index) {
  SimulatedNode& node = at(nodes_, index);
  ++result_.reboots;
  wake(node);
  for (const auto& [key, process] : node.processes)
    if (--running_[key.job][key.attempt] == 0) running_[key.job].erase(key.attempt);
  node.processes.clear();
  node.exits.clear();
  node.last_contact.reset();
  node.kept_until = {};
  node.agent.reset();
  cut(index);
  events_.add(events_.now() + Seconds{30 + exponential(30)}, [this, index] { start_agent(index); });
}

// The supervisors of processes end them when their lease is over, also while no agent lives.
void SimulatedWorld::enforce_leases(int index) {
  SimulatedNode& node = at(nodes_, index);
  const Seconds last = node.last_contact.value_or(events_.now());
  for (auto each = node.processes.begin(); each != node.processes.end();) {
    const auto& [key, process] = *each;
    if (events_.now() < std::max(last + process.lease, node.kept_until)) {
      ++each;
      continue;
    }
    if (--running_[key.job][key.attempt] == 0) running_[key.job].erase(key.attempt);
    if (node.agent) node.agent->ended(key, 0, kKilledSignal, true);
    each = node.processes.erase(each);
  }
  act(index);
}

// Leases that end before the next sweep end at their own moment.
void SimulatedWorld::watch_leases(int index) {
  const SimulatedNode& node = at(nodes_, index);
  const Seconds last = node.last_contact.value_or(events_.now());
  for (const auto& [key, process] : node.processes) {
    const Seconds end = std::max(last + process.lease, node.kept_until);
    if (end < events_.now() + kSweepInterval)
      events_.add(end, [this, index] { enforce_leases(index); });
  }
}

void SimulatedWorld::cut(int index) {
  SimulatedNode& node = at(nodes_, index);
  wake(node);
  ++node.session;
  node.is_connected = false;
}

void SimulatedWorld::connect(int index) {
  SimulatedNode& node = at(nodes_, index);
  ++node.session;
  node.is_connected = true;
  sched::ClusterNode facts;
  facts.name = node.name;
  facts.device_type = "cpu";
  facts.devices = options_.devices;
  facts.device_memory_mib = 1024;
  facts.leaf = index / 16;
  const auto joined = controller_.core->join(
      {.facts = facts, .address = node.name, .journal_id = node.name}, moment());
  if (!joined) return fail(joined.error().message);
  node.number = *joined;
  send_reports(index, node.agent->complete_report(), true);
  flush_controller();
}

void SimulatedWorld::send_reports(int index, std::vector<control::ReplicaReport> reports,
                                  bool is_complete) {
  SimulatedNode& node = at(nodes_, index);
  if (!node.is_connected || (reports.empty() && !is_complete)) return;
  node.last_to_controller = std::max(
      node.last_to_controller, events_.now() + Seconds{exponential(options_.message_time.value)});
  events_.add(node.last_to_controller,
              [this, index, is_complete, reports = std::move(reports), session = node.session] {
                SimulatedNode& sender = at(nodes_, index);
                if (sender.session != session || !is_reachable(sender)) return;
                const int number = sender.number;
                const std::vector<control::ReplicaOrder> answers = controller_.core->report(
                    number, reports, is_complete, controller_.durable, moment());
                flush_controller();
                send_orders(index, answers);
                if (is_complete)
                  send_orders(index, controller_.core->orders_for(number, controller_.durable));
              });
}

void SimulatedWorld::act(int index) {
  SimulatedNode& node = at(nodes_, index);
  if (!node.agent) return;
  node_agent::AgentActions actions = node.agent->take_actions();
  node.journal.insert(node.journal.end(), actions.journal.begin(), actions.journal.end());
  if (!actions.starts.empty() && options_.faults.agent_kills > 0 &&
      random_.uniform() < kKillAfterJournal) {
    kill_agent(index);
    return;
  }
  for (const control::ReplicaOrder& order : actions.starts)
    start_process(index, order);
  for (const control::ReplicaKey& key : actions.stops) {
    const auto process = node.processes.find(key);
    if (process == node.processes.end()) continue;
    events_.add(events_.now() + Seconds{exponential(kStopTime.value)},
                [this, index, key, run = process->second.run] {
                  end_process(index, key, run, kTerminated);
                });
  }
  for (const control::ReplicaKey& key : actions.kills) {
    const auto process = node.processes.find(key);
    if (process != node.processes.end()) end_process(index, key, process->second.run, kKilled);
  }
  send_reports(index, std::move(actions.reports), false);
}

void SimulatedWorld::start_process(int index, const control::ReplicaOrder& order) {
  SimulatedNode& node = at(nodes_, index);
  const control::ReplicaKey& key = order.key;
  if (++starts_[key] > 1)
    return fail(fmt::format("replica {} of attempt {} of job {} starts twice", key.replica,
                            key.attempt, key.job));
  for (const auto& [other, process] : node.processes) {
    if ((process.devices & order.devices) != 0)
      return fail(fmt::format("a device of node {} is used by jobs {} and {} at once", node.name,
                              other.job, key.job));
  }
  std::map<int, int>& attempts = running_[key.job];
  ++attempts[key.attempt];
  if (attempts.size() > 1)
    return fail(fmt::format("attempts {} and {} of job {} run at once", attempts.begin()->first,
                            attempts.rbegin()->first, key.job));
  const int run = starts_[key];
  node.processes[key] = {.devices = order.devices, .run = run, .lease = order.lease};
  const int status = random_.uniform() < options_.job_failures ? 1 : 0;
  events_.add(events_.now() + Seconds{exponential(options_.job_time.value)},
              [this, index, key, run, status] { end_process(index, key, run, status); });
}

void SimulatedWorld::end_process(int index, const control::ReplicaKey& key, int run, int status) {
  SimulatedNode& node = at(nodes_, index);
  const auto process = node.processes.find(key);
  if (process == node.processes.end() || process->second.run != run) return;
  node.processes.erase(process);
  node.exits[key] = status;
  if (--running_[key.job][key.attempt] == 0) running_[key.job].erase(key.attempt);
  if (!node.agent) return;
  node.agent->ended(key, status, 0, false);
  act(index);
}

// Heartbeats, once a second: an answer tells the agent that it was heard when it sent.
void SimulatedWorld::sweep() {
  events_.add(events_.now() + kSweepInterval, [this] { sweep(); });
  last_sweep_ = events_.now();
  const control::Moment now = moment();
  const bool repeats_orders =
      std::fmod(events_.now().value, kOrdersAgain.value) < kSweepInterval.value;
  for (int index = 0; index < options_.nodes; ++index) {
    SimulatedNode& node = at(nodes_, index);
    if (node.is_quiet) {
      controller_.core->hear(node.number, now);
      if (!repeats_orders || at(controller_.core->tables().nodes, node.number).replicas.empty())
        continue;
      wake(node);
    }
    if (is_reachable(node)) {
      if (!node.is_connected) connect(index);
      if (error_) return;
      const int number = node.number;
      controller_.core->hear(number, now);
      node.agent->answered(events_.now());
      if (options_.planted != PlantedError::kExtensionKept) {
        node.agent->welcomed(control::ControllerOptions{}.lease);
        node.kept_until = {};
      }
      node.last_contact = node.agent->last_contact();
      if (repeats_orders && !at(controller_.core->tables().nodes, number).replicas.empty())
        send_orders(index, controller_.core->orders_for(number, controller_.durable));
    }
    watch_leases(index);
    if (node.agent && (!node.processes.empty() || !node.agent->started().empty() ||
                       !node.agent->complete_report().empty())) {
      node.agent->tick(events_.now());
      act(index);
    }
    node.is_quiet =
        is_reachable(node) && node.is_connected && node.processes.empty() && node.agent->is_idle();
  }
  if (!controller_.core) return;
  controller_.core->tick(moment());
  flush_controller();
  decide_if_needed();
}

}  // namespace regatta::fault_simulation
