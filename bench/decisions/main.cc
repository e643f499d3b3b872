// bench/decisions/main.cc: time and memory of decisions on a large cluster with a long queue.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/stats.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/wait_explanation.h"

namespace regatta::sched {
namespace {

constexpr const char* kUsage =
    "usage: regatta-decisions [NODES [RUNNING [PENDING [SLICES]]]]\n"
    "SLICES of 100 waiting jobs ask for a part of one device.\n"
    "Example: regatta-decisions 10000 20000 80000 0\n";
constexpr int kDecisions = 7;
constexpr double kMostFull = 0.95;

// Processor time of the process: other processes slow it down less than the time by the clock.
double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// FNV-1a over all that a decision says, to compare decisions of two builds.
std::uint32_t hash_of(const SchedulingDecision& decision) {
  std::uint32_t hash = 2166136261U;
  const auto add = [&hash](const std::string& text) {
    for (const char each : text)
      hash = (hash ^ static_cast<unsigned char>(each)) * 16777619U;
  };
  for (const SchedulingAction& action : decision.actions) {
    add(action.job + action.reason);
    for (const ReplicaPlacement& replica : action.replicas)
      add(fmt::format("{} {} {},", replica.role, replica.node, replica.devices));
  }
  for (const WaitingJob& job : decision.waiting)
    add(job.job + std::to_string(static_cast<int>(job.cause)));
  return hash;
}

// In MiB; the largest so far.
double resident_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

JobRequest job_of(packing::RandomSequence& random, const std::string& name, int devices) {
  JobRequest job;
  job.name = name;
  job.queue = "q" + std::to_string(random.below(50));
  job.user = "u" + std::to_string(random.below(500));
  job.priority = static_cast<int>(random.below(3));
  Role role;
  role.replicas_min = role.replicas_max = std::max(1, devices / 8);
  role.devices = std::min(8, devices);
  role.cpu_milli = 8000 * role.devices;
  job.roles = {role};
  job.run_time = {.median = {60.0 * static_cast<double>(1 + random.below(1000))}, .log_spread = 1};
  job.checkpointing = {.interval = {1800}, .write = {10}, .restart = {120}};
  return job;
}

ClusterSnapshot full_cluster(packing::RandomSequence& random, int nodes, int running) {
  ClusterSnapshot snapshot;
  snapshot.now = {1e6};
  for (int i = 0; i < nodes; ++i)
    snapshot.nodes.push_back({.name = "n" + std::to_string(i),
                              .device_type = "h100",
                              .devices = 8,
                              .device_memory_mib = 80 << 10,
                              .cpu_milli = 128'000,
                              .memory_mib = 1 << 20,
                              .nics = 8,
                              .leaf = i / 32,
                              .group = i / 256});
  // Jobs of 1, 2 or 4 devices on the first nodes, whole nodes on the others, until it is full.
  int node = 0;
  int first = 0;
  for (int i = 0; i < running && node < nodes * kMostFull; ++i) {
    const int devices = std::min(8 - first, 1 << random.below(4));
    RunningJob job;
    job.request = job_of(random, "r" + std::to_string(i), devices);
    job.started = {1e6 - static_cast<double>(random.below(100'000))};
    job.checkpointed = {std::max(job.started.value, 1e6 - static_cast<double>(random.below(1800)))};
    job.replicas = {{.role = 0, .node = node, .devices = ((1U << devices) - 1U) << first}};
    first += devices;
    if (first == 8) {
      first = 0;
      ++node;
    }
    snapshot.running.push_back(std::move(job));
  }
  return snapshot;
}

// A share of the compute and memory of one device.
void make_slice(packing::RandomSequence& random, Role& role) {
  role.replicas_min = role.replicas_max = role.devices = 1;
  role.device_milli = 100 * static_cast<int>(1 + random.below(9));
  role.device_memory_mib = 8192 * static_cast<int>(1 + random.below(9));
  role.cpu_milli = 8 * role.device_milli;
}

// How long it takes to say why a job waits, and when it starts.
Status measure_waits(ClusterSnapshot snapshot, JobQueue queue, const SchedulingPolicy& policy) {
  constexpr std::size_t kAsked = 100;
  REGATTA_TRY(decision, decide(snapshot, queue, policy));
  apply_decision(decision, snapshot, queue);
  if (decision.waiting.empty()) return {};
  std::vector<double> times;
  WaitExplanation last;
  for (std::size_t i = 0; i < kAsked; ++i) {
    const std::string& job = decision.waiting[i * decision.waiting.size() / kAsked].job;
    const double begin = processor_seconds();
    REGATTA_TRY(explanation, explain_wait(snapshot, queue, policy, decision, job));
    times.push_back(processor_seconds() - begin);
    if (i == 0) last = std::move(explanation);
  }
  std::sort(times.begin(), times.end());
  const double begin = processor_seconds();
  REGATTA_TRY_DO(predict_wait(snapshot, queue, policy, last));
  fmt::print(
      "why a job waits: {:.2f} ms in the median of {}, at most {:.2f} ms; the predicted start of "
      "the "
      "first {:.0f} ms; {}\n",
      1e3 * median(times), kAsked, 1e3 * times.back(), 1e3 * (processor_seconds() - begin),
      start_sentence(last));
  return {};
}

Status run(bench_program::Arguments arguments) {
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 4));
  const auto number = [&](std::size_t index, const char* name, const char* usual, IntRange range) {
    return bench_program::number_in(name, index < arguments.size() ? arguments[index] : usual,
                                    range);
  };
  REGATTA_TRY(nodes, number(0, "NODES", "10000", {}));
  REGATTA_TRY(running, number(1, "RUNNING", "20000", {}));
  REGATTA_TRY(pending, number(2, "PENDING", "80000", {}));
  REGATTA_TRY(slices, number(3, "SLICES", "0", {0, 100}));
  packing::RandomSequence random(1);
  const ClusterSnapshot snapshot = full_cluster(random, nodes, running);
  JobQueue queue;
  std::vector<QuotaQueue> queues;
  for (int i = 0; i < 50; ++i) {
    queues.emplace_back();
    queues.back().name = "q" + std::to_string(i);
    queues.back().guaranteed[Resource::kCompute] = nodes * 8LL * kDeviceMilli / 100;
  }
  REGATTA_TRY(tree, QuotaTree::create(std::move(queues)));
  queue.quotas = std::move(tree);
  for (int i = 0; i < pending; ++i) {
    queue.jobs.push_back({.request = job_of(random, "p" + std::to_string(i), 1 << random.below(8)),
                          .completed = {},
                          .evictions = 0});
    if (static_cast<int>(random.below(100)) < slices)
      make_slice(random, queue.jobs.back().request.roles[0]);
  }
  fmt::print("{} nodes, {} jobs run, {} wait; state {:.0f} MiB\n", nodes, snapshot.running.size(),
             pending, resident_memory());
  for (const std::string& name : scheduling_policy_names()) {
    REGATTA_TRY(policy, find_scheduling_policy(name));
    std::vector<double> times;
    SchedulingDecision last;
    for (int i = 0; i < kDecisions; ++i) {
      const double begin = processor_seconds();
      REGATTA_TRY(decision, decide(snapshot, queue, policy));
      times.push_back(processor_seconds() - begin);
      last = std::move(decision);
    }
    fmt::print(
        "{:<16} {:7.1f} ms of processor time a decision (median of {}), {} actions, hash {:08x}, "
        "memory at most {:.0f} MiB\n",
        name, 1e3 * median(times), kDecisions, last.actions.size(), hash_of(last),
        resident_memory());
  }
  REGATTA_TRY(policy, find_scheduling_policy("regatta"));
  return measure_waits(snapshot, queue, policy);
}

}  // namespace
}  // namespace regatta::sched

int main(int argc, char** argv) {
  return regatta::bench_program::run_program(argc, argv, regatta::sched::kUsage, 0,
                                             regatta::sched::run);
}
