// fault_simulation/fault_simulation.h: the cores of the controller and of many agents in one
// process, in virtual time, under faults drawn from a seed. It checks after each event what must
// always hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::fault_simulation {

// Rates are expected events in an hour of virtual time, over the whole cluster.
struct FaultRates {
  double controller_kills = 0;     // loses its memory and what is not yet durable
  double controller_restarts = 0;  // in good order: it lets agents keep their replicas
  double agent_kills = 0;          // loses its memory; processes and journal stay
  double reboots = 0;              // of a node: processes end, the journal stays
  double cut_connections = 0;      // what is under way is lost
  double partitions = 0;           // of a node, for partition_time
  Seconds partition_time{60};
  double double_sends = 0;  // probability that a message to an agent comes twice
};

// Errors that are planted to see that the rules find them.
enum class PlantedError {
  kNone,
  kJournalLost,       // an agent does not read its journal when it starts
  kFenceTooEarly,     // the controller waits for less than the lease of the agents
  kOrderTooEarly,     // orders leave before the change is durable
  kLeaseForgotten,    // agents end all replicas by the lease of their welcome
  kExtensionIgnored,  // the controller does not wait for what an earlier one has allowed
  kExtensionKept      // the welcome of a controller does not end what an earlier one has allowed
};

struct FaultSimulationOptions {
  std::uint64_t seed = 1;
  int nodes = 8;
  int devices = 8;
  int jobs = 100;  // submitted over the first half of `length`
  int gang_replicas_max = 4;
  Seconds short_lease{};  // of the queue in which half of the jobs are; 0: there is one queue alone
  Seconds length{3600};   // then faults end, and what is left gets `settle_time` to end
  Seconds settle_time{3600};
  Seconds job_time{120};       // mean of exponential run times
  double job_failures = 0.05;  // share of replicas that end with a status other than 0
  Seconds commit_time{0.005};
  Seconds message_time{0.01};  // mean
  Seconds decision_interval{0.5};
  FaultRates faults;
  PlantedError planted = PlantedError::kNone;
};

struct FaultSimulationResult {
  std::int64_t events = 0;
  int acknowledged = 0;  // submissions
  int succeeded = 0;
  int failed = 0;
  int cancelled = 0;
  int attempts = 0;
  int controller_kills = 0;
  int controller_restarts = 0;
  int agent_kills = 0;
  int reboots = 0;
  int cuts = 0;
  int partitions = 0;
  std::uint64_t state_hash = 0;  // of everything at the end: equal for equal options
  Seconds ended;                 // virtual time at which the last job was over
};

// kConflict names the first broken rule with the time and the seed: an acknowledged job is lost; a
// replica starts twice; two attempts of a job run at once; a device is used twice; a job is never
// over; a process is left.
Result<FaultSimulationResult> simulate(const FaultSimulationOptions& options,
                                       const sched::SchedulingPolicy& policy);

}  // namespace regatta::fault_simulation
