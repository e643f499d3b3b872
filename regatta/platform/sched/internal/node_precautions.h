// sched/internal/node_precautions.h: what a decision expects of each node, and which nodes it keeps
// ordinary jobs from: nodes that fail again and again, and spares.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/free_capacity.h"

namespace regatta::sched {

struct NodePrecautions {
  // Expected of each node, by its own figure or its history; null: by its own figure alone.
  std::shared_ptr<const std::vector<double>> failures_per_day;
  std::vector<int> avoided;  // by index; open nodes that get no new jobs while others suffice
  // By index; nodes that failed again, and are expected to fail more often than a node without a
  // history: jobs leave them where that loses less. How many others there are does not matter.
  std::vector<int> failing;
  std::vector<int> spares;  // healthy whole nodes that are kept free
};

// Expected failures, nodes that fail again, and those of them to avoid by reliability/blacklist.h:
// for the largest job, of those that run and wait, with the other nodes of its device type as its
// spares. No spares yet.
NodePrecautions node_precautions(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                 const SchedulingPolicy& policy);

// Failures of a node in the time that histories count.
int remembered_failures(const ClusterNode& node, Seconds now);

// Whether spares heal the job, or one that holds so many devices.
bool is_healed_by_spares(const SchedulingPolicy& policy, const RunningJob& job);
bool is_healed_by_spares(const SpareNodes& spares, double devices);

// Chooses the spares for the jobs that run: of the open nodes that are wholly free, those with the
// least expected failures, then those in leaves that are begun already. `free` has all of them
// open.
std::vector<int> choose_spares(const FreeCapacity& free, const SchedulingPolicy& policy,
                               std::span<const RunningJob> running);

// The same where other amounts say what is free.
struct SpareChoice {
  std::span<const ClusterNode> nodes;
  std::set<std::string> device_types;  // on which jobs run that spares heal
  std::function<bool(int)> is_open;    // by node
  std::function<bool(int)> is_wholly_free;
  std::function<double(int)> failures_per_day;
};
std::vector<int> choose_spares(const SpareChoice& choice, const SpareNodes& spares);

void set_all_open(FreeCapacity& free, std::span<const int> nodes, bool is_open);

}  // namespace regatta::sched
