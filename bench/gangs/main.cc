// bench/gangs/main.cc: times decisions about gangs on 16,384 devices and prints a Markdown table.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "bench/gangs/random_cluster.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/stats.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/internal/gang_placement.h"
#include "regatta/platform/sched/internal/victim_search.h"

namespace regatta::sched {
namespace {

constexpr const char* kUsage =
    "usage: regatta-gangs [--json] [DECISIONS]\n"
    "Times DECISIONS decisions (by default 200) for each occupancy, size and kind of gang\n";

enum class GangKind {
  kNodes,
  kHalfNodes,
  kSubgroups,
  kTwoRoles,
  kPairedSubgroups,
  kThreeRoles,
  kOneGroup
};
constexpr std::array kGangKinds = {
    std::pair{GangKind::kNodes, "replicas of 8"},
    std::pair{GangKind::kHalfNodes, "replicas of 2"},
    std::pair{GangKind::kSubgroups, "subgroups of 4 below a leaf"},
    std::pair{GangKind::kTwoRoles, "two roles"},
    std::pair{GangKind::kPairedSubgroups, "two roles, subgroups of 4"},
    std::pair{GangKind::kThreeRoles, "three roles"},
    std::pair{GangKind::kOneGroup, "below one group"}};

JobRequest gang_of(GangKind kind, int devices) {
  JobRequest job;
  job.name = "gang";
  job.slowdown = {1, 1.02, 1.05, 1.15};
  const int size = kind == GangKind::kHalfNodes ? 2 : kBenchNodeDevices;
  const int replicas = devices / size;
  job.roles.push_back({.name = "worker",
                       .replicas_min = replicas,
                       .replicas_max = replicas,
                       .devices = size,
                       .cpu_milli = 8000 * size});
  if (kind == GangKind::kSubgroups || kind == GangKind::kPairedSubgroups) {
    job.roles[0].subgroup_replicas = 4;
    job.roles[0].subgroup_level = TopologyLevel::kLeaf;
  }
  if (kind == GangKind::kTwoRoles || kind == GangKind::kPairedSubgroups ||
      kind == GangKind::kThreeRoles) {
    job.roles[0].replicas_min = replicas - replicas / 4;
    job.roles.push_back(
        {.name = "decode", .replicas_min = replicas / 4, .devices = 4, .cpu_milli = 16'000});
  }
  if (kind == GangKind::kThreeRoles)
    job.roles.push_back({.name = "router", .replicas_min = 4, .devices = 1, .cpu_milli = 8000});
  if (kind == GangKind::kOneGroup) job.topology.required = TopologyLevel::kGroup;
  return job;
}

std::vector<VictimOption> random_options(const ClusterSnapshot& snapshot, std::uint64_t seed) {
  packing::RandomSequence random(seed);
  std::vector<VictimOption> options;
  for (int job = 0; job < std::ssize(snapshot.running); ++job) {
    const RunningJob& running = at(snapshot.running, job);
    const double devices =
        static_cast<double>(std::ssize(running.replicas)) * running.request.roles[0].devices;
    if (random.below(4) != 0)
      options.push_back({.job = job, .eviction_cost = 3600 * devices * random.uniform()});
  }
  return options;
}

// Milliseconds of the processor and of the clock on the wall: other processes delay the second.
struct Moment {
  double cpu = 0;
  double wall = 0;
};

Moment now() {
  timespec cpu{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return {
      1e3 * static_cast<double>(cpu.tv_sec) + 1e-6 * static_cast<double>(cpu.tv_nsec),
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
          .count()};
}

struct Timings {
  std::vector<double> cpu_ms;
  std::vector<double> wall_ms;
  int placed = 0;

  void add(Moment start, Moment end, bool is_placed) {
    cpu_ms.push_back(end.cpu - start.cpu);
    wall_ms.push_back(end.wall - start.wall);
    placed += is_placed ? 1 : 0;
  }
};

void time_placement(const ClusterSnapshot& snapshot, const JobRequest& job, Timings& timings) {
  const Moment start = now();
  const FreeCapacity free(snapshot);
  const auto placement = place_gang(free, {job, smallest_size(job), {}});
  timings.add(start, now(), placement.has_value());
}

void time_victims(const ClusterSnapshot& snapshot, const JobRequest& job,
                  const std::vector<VictimOption>& options, Timings& timings) {
  const Moment start = now();
  const FreeCapacity free(snapshot);
  const auto victims = find_victims(free, {job, smallest_size(job), {}}, options);
  timings.add(start, now(), victims.has_value());
}

struct Row {
  int used_percent = 0;
  int devices = 0;
  std::string kind;
  bool has_victims = false;
};

void print_row(const Row& row, Timings& timings, bool is_json) {
  const double placed = 100.0 * timings.placed / static_cast<double>(timings.cpu_ms.size());
  fmt::print(
      fmt::runtime(
          is_json
              ? "{{\"used_percent\": {}, \"devices\": {}, \"gang\": \"{}\", \"victims\": \"{}\", "
                "\"placed_percent\": {:.0f}, \"cpu_p50_ms\": {:.3f}, \"cpu_p99_ms\": {:.3f}, "
                "\"cpu_max_ms\": {:.3f}, \"wall_p50_ms\": {:.3f}, \"wall_p99_ms\": {:.3f}}}\n"
              : "| {} | {} | {} | {} | {:.0f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n"),
      row.used_percent, row.devices, row.kind, row.has_victims ? "yes" : "no", placed,
      quantile(timings.cpu_ms, 0.5), quantile(timings.cpu_ms, 0.99), quantile(timings.cpu_ms, 1),
      quantile(timings.wall_ms, 0.5), quantile(timings.wall_ms, 0.99));
  std::fflush(stdout);
}

Status run(bench_program::Arguments arguments) {
  const bool is_json = bench_program::take_flag(arguments, "--json");
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 1));
  REGATTA_TRY(decisions, bench_program::number_in(
                             "DECISIONS", arguments.empty() ? "200" : arguments.front(), {}));
  if (!is_json)
    fmt::print(
        "| used % | devices | gang | victims | placed % | p50, CPU ms | p99 | max | p50, wall ms | "
        "p99 |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int used : {60, 80, 90, 95}) {
    std::vector<ClusterSnapshot> snapshots;
    snapshots.reserve(as_index(decisions));
    for (int i = 0; i < decisions; ++i)
      snapshots.push_back(random_cluster(used / 100.0, static_cast<std::uint64_t>(i)));
    for (int devices = 64; devices <= 4096; devices *= 4)
      for (const auto& [kind, name] : kGangKinds) {
        if (kind == GangKind::kOneGroup && devices > 1024) continue;
        const JobRequest job = gang_of(kind, devices);
        for (const bool has_victims : {false, true}) {
          Timings timings;
          for (int i = 0; i < decisions; ++i)
            if (has_victims)
              time_victims(at(snapshots, i), job,
                           random_options(at(snapshots, i), static_cast<std::uint64_t>(i)),
                           timings);
            else
              time_placement(at(snapshots, i), job, timings);
          print_row({used, devices, name, has_victims}, timings, is_json);
        }
      }
  }
  return {};
}

}  // namespace
}  // namespace regatta::sched

int main(int argc, char** argv) {
  return regatta::bench_program::run_program(argc, argv, regatta::sched::kUsage, 0,
                                             regatta::sched::run);
}
