// control/job_spec.h: reads what a user submits: the gang, as the scheduler knows it, and what its
// replicas run. Format: docs/formats/submitted_job.md.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/control/job.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::control {

enum class RestartRule {
  kNever,
  kOnNodeFault,  // when its node is lost or taken away
  kOnFailure     // and when a replica ends with a status other than 0
};
inline constexpr EnumNames<3> kRestartRuleNames = {"never", "on_node_fault", "on_failure"};

// The pause before the n-th restart after a failure is first_pause * 2^(n - 1), at most pause_max.
struct RestartPolicy {
  RestartRule rule = RestartRule::kOnNodeFault;
  int failures_max = 3;  // restarts after failures; node faults do not count
  Seconds first_pause{10};
  Seconds pause_max{600};
};
Seconds pause_before_restart(const RestartPolicy& policy, int failures);

// Rising indices: first, first + step, and so on up to last.
struct ArrayRange {
  int first = 0;
  int last = 0;
  int step = 1;
};

// A job that is submitted once and runs for each index.
struct JobArray {
  std::vector<ArrayRange> ranges;  // empty: no array; rising
  int limit = 0;                   // so many run at a time; 0: any number

  int size() const;
  int index_at(int position) const;  // position from 0 below size()
  int position_of(int index) const;  // -1: it has no such index
};
inline constexpr int kArrayMost = 10'000;
// "0-99:2,200%10": ranges with steps, and the limit. kInvalidInput gives a right example.
Result<JobArray> parse_job_array(std::string_view text);

struct JobSpec {
  sched::JobRequest request;
  std::vector<std::string> command;  // program and arguments of each rank; empty: it trains
  std::string training;              // "": none; else JSON, as trainer/training_request.h reads it
  std::vector<std::pair<std::string, std::string>> environment;
  std::string working_folder;  // "": a fresh folder of the attempt
  ContainerImage container;
  std::string checkpoint_folder;    // "": the job has none
  int stop_signal = 15;             // SIGTERM
  Seconds stop_grace{-1};           // between it and SIGKILL; below 0: the node's own
  bool is_rank_per_device = false;  // else one rank for each replica
  RestartPolicy restart;
  std::vector<JobId> after;  // starts when these have succeeded
  bool is_held = false;
  JobArray array;
};

// A map of the keys of docs/formats/submitted_job.md, and its tree; errors stay in the document.
JobSpec read_job_spec(const YamlMap& map, const YamlNode& tree);

// The spec of a JSON text. kInvalidInput with key and remedy, for everything that can be known of
// the job alone. `name` stands for the text in errors.
Result<JobSpec> parse_job_spec(std::string_view json, std::string_view name);

// Ranks of a replica of the role, and of the whole gang with its smallest size.
int ranks_of_replica(const JobSpec& spec, int role);

}  // namespace regatta::control
