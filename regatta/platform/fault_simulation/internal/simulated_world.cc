#include "regatta/platform/fault_simulation/internal/simulated_world.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/stats.h"
#include "regatta/base/core/text.h"

namespace regatta::fault_simulation {
namespace {

constexpr Seconds kRetry{1.0};  // of a client without an answer
constexpr Seconds kSweep{1.0};
constexpr Seconds kFaultStep{1.0};
constexpr const char* kQueues[] = {"usual", "quick"};

}  // namespace

void EventQueue::add(Seconds time, std::function<void()> work) {
  events_.push({std::max(time, now_), ++count_, std::move(work)});
}

void EventQueue::run_next() {
  Event event = events_.top();
  events_.pop();
  now_ = event.time;
  event.work();
}

SimulatedWorld::SimulatedWorld(const FaultSimulationOptions& options,
                               const sched::SchedulingPolicy& policy)
    : options_(options), policy_(policy), random_(options.seed) {
  constexpr std::string_view kRules[] = {"never", "on_node_fault", "on_failure"};
  nodes_.resize(as_index(options.nodes));
  for (int i = 0; i < options.nodes; ++i)
    node_numbers_[at(nodes_, i).name = fmt::format("n{}", i)] = i;
  for (int i = 0; i < options.jobs; ++i) {
    const bool is_small = random_.uniform() < 0.5;
    const std::size_t replicas =
        is_small ? 1 : 1 + random_.below(static_cast<std::size_t>(options.gang_replicas_max));
    const std::size_t devices = 1 + random_.below(static_cast<std::size_t>(options.devices));
    specs_.push_back(fmt::format(
        R"({{"name":"j{}","queue":"{}","priority":{},"roles":[{{"replicas":{},"devices":{}}}],"command":["work"],)"
        R"("run_time":{{"median":"{}s","log_spread":1}},"restart":{{"rule":"{}","failures":3}}}})",
        i, options.short_lease.value > 0 ? kQueues[as_index(i % 2)] : "default", random_.below(3),
        replicas, devices, options.job_time.value, kRules[random_.below(std::size(kRules))]));
  }
}

control::Moment SimulatedWorld::moment() const {
  return {.now = events_.now(),
          .unix_ms = static_cast<std::int64_t>(events_.now().value * 1000) + 1'700'000'000'000};
}

double SimulatedWorld::exponential(double mean) {
  return -mean * std::log(1 - random_.uniform());
}

void SimulatedWorld::fail(const std::string& rule) {
  if (error_) return;
  error_ = Error{Code::kConflict,
                 fmt::format("seed {}, {:.3f} s: {}", options_.seed, events_.now().value, rule)};
}

// The client repeats a submission until it is acknowledged.
void SimulatedWorld::submit(int job) {
  if (acknowledged_.contains(job)) return;
  events_.add(events_.now() + kRetry * (1 + random_.uniform()), [this, job] { submit(job); });
  if (!controller_.core) return;
  const std::string key = fmt::format("key-{}", job);
  const control::Submission submission{.spec = at(specs_, job), .user = "ada"};
  const auto ids = controller_.core->submit({&submission, 1}, key, key, moment());
  if (!ids) {
    fail(ids.error().message);
    return;
  }
  flush_controller();
  // The answer leaves once everything that it may rest on is durable.
  const control::Revision needed = controller_.core->tables().last_revision;
  const int incarnation = controller_.incarnation;
  const control::JobId id = ids->front();
  const auto answer = std::make_shared<std::function<void()>>();
  *answer = [this, answer = std::weak_ptr(answer), needed, incarnation, job, id] {
    if (!controller_.core || controller_.incarnation != incarnation) return;
    if (controller_.durable < needed) {
      if (const auto again = answer.lock())
        events_.add(events_.now() + options_.commit_time, [again] { (*again)(); });
      return;
    }
    const auto [found, is_new] = acknowledged_.emplace(job, id);
    if (!is_new && found->second != id)
      fail(fmt::format("submission {} was acknowledged as job {} and as job {}", job, found->second,
                       id));
  };
  (*answer)();
  events_.add(events_.now() + options_.commit_time, [answer] { (*answer)(); });
}

void SimulatedWorld::draw_faults() {
  if (events_.now() >= options_.length) return;
  events_.add(events_.now() + kFaultStep, [this] { draw_faults(); });
  // Each fault at some moment of the step.
  const auto draw = [this](double per_hour, std::function<void()> fault) {
    if (per_hour > 0 && random_.uniform() < per_hour * kFaultStep.value / 3600)
      events_.add(events_.now() + kFaultStep * random_.uniform(), std::move(fault));
  };
  const auto any_node = [this] { return static_cast<int>(random_.below(nodes_.size())); };
  const FaultRates& faults = options_.faults;
  draw(faults.controller_kills, [this] { kill_controller(); });
  draw(faults.controller_restarts, [this] { restart_controller(); });
  draw(faults.agent_kills, [this, node = any_node()] { kill_agent(node); });
  draw(faults.reboots, [this, node = any_node()] { reboot(node); });
  draw(faults.cut_connections, [this, node = any_node()] {
    ++result_.cuts;
    cut(node);
  });
  draw(faults.partitions, [this, node = any_node()] {
    ++result_.partitions;
    cut(node);
    at(nodes_, node).partitioned_until =
        events_.now() + Seconds{exponential(options_.faults.partition_time.value)};
  });
}

bool SimulatedWorld::is_settled() const {
  if (static_cast<int>(acknowledged_.size()) < options_.jobs || !controller_.core) return false;
  for (const auto& [id, job] : controller_.core->tables().jobs)
    if (!is_over(job.phase)) return false;
  return std::all_of(nodes_.begin(), nodes_.end(),
                     [](const SimulatedNode& node) { return node.processes.empty(); });
}

// The first job or process that is left although all faults have ended long ago.
std::string SimulatedWorld::left_text() const {
  if (!controller_.core) return "the controller is left dead";
  const control::ClusterTables& tables = controller_.core->tables();
  for (const auto& [id, job] : tables.jobs) {
    if (is_over(job.phase)) continue;
    std::string text =
        fmt::format("job {} is left {}: {}", handle_of(job),
                    at(control::kJobPhaseNames, static_cast<int>(job.phase)), job.reason);
    if (job.attempt == nullptr) return text;
    for (const control::Replica& replica : job.attempt->replicas)
      text += fmt::format("; on {}: {}", at(tables.nodes, replica.node).facts.name,
                          at(control::kReplicaPhaseNames, static_cast<int>(replica.phase)));
    return text;
  }
  for (const SimulatedNode& node : nodes_)
    for (const auto& [key, process] : node.processes)
      return fmt::format("a process of job {} is left on node {}", key.job, node.name);
  return "a submission is left without an answer";
}

Status SimulatedWorld::check_end() const {
  if (error_) return *error_;
  const auto broken = [this](const std::string& rule) {
    return Error{Code::kConflict, fmt::format("seed {}, at the end: {}", options_.seed, rule)};
  };
  const control::ClusterTables& tables = controller_.core->tables();
  if (static_cast<int>(tables.jobs.size()) != options_.jobs)
    return broken(fmt::format("{} jobs of {} submissions", tables.jobs.size(), options_.jobs));
  for (const auto& [number, id] : acknowledged_) {
    const control::ManagedJob* job = tables.find_job(id);
    if (job == nullptr || job->name != fmt::format("j{}", number))
      return broken(fmt::format("job {} was acknowledged and is lost", id));
  }
  return {};
}

Result<FaultSimulationResult> SimulatedWorld::run() {
  start_controller();
  if (options_.short_lease.value > 0) {
    const Status set = controller_.core->set_quotas(
        fmt::format(R"({{"queues":[{{"name":"{}"}},{{"name":"{}","lease":"{}s"}}]}})", kQueues[0],
                    kQueues[1], options_.short_lease.value));
    if (!set) return set.error();
    flush_controller();
  }
  for (int node = 0; node < options_.nodes; ++node)
    start_agent(node);
  for (int job = 0; job < options_.jobs; ++job)
    events_.add(options_.length * (0.5 * random_.uniform()), [this, job] { submit(job); });
  events_.add({}, [this] { sweep(); });
  draw_faults();
  const Seconds end = options_.length + options_.settle_time;
  while (!error_ && !events_.is_empty()) {
    events_.run_next();
    if (events_.now() > end) {
      fail(left_text());
      break;
    }
    if (events_.now() > options_.length && is_settled()) break;
  }
  REGATTA_TRY_DO(check_end());
  result_.events = events_.count();
  result_.acknowledged = static_cast<int>(acknowledged_.size());
  result_.ended = events_.now();
  for (const auto& [id, job] : controller_.core->tables().jobs) {
    result_.attempts += job.attempts;
    result_.succeeded += job.phase == control::JobPhase::kSucceeded ? 1 : 0;
    result_.failed += job.phase == control::JobPhase::kFailed ? 1 : 0;
    result_.cancelled += job.phase == control::JobPhase::kCancelled ? 1 : 0;
  }
  result_.state_hash = kFnv1aBasis;
  for (const auto& [key, record] : store_) {
    result_.state_hash = fnv1a(key, result_.state_hash);
    result_.state_hash = fnv1a(record.value, result_.state_hash);
  }
  return result_;
}

Result<FaultSimulationResult> simulate(const FaultSimulationOptions& options,
                                       const sched::SchedulingPolicy& policy) {
  return SimulatedWorld(options, policy).run();
}

}  // namespace regatta::fault_simulation
