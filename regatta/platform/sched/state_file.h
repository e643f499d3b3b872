// sched/state_file.h: reads the state of a cluster and its queue from a YAML file: nodes, queues,
// running and pending jobs. Format: docs/formats/sched_state.md.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

struct SchedulerState {
  ClusterSnapshot snapshot;  // its time is 0
  JobQueue queue;
};

// Reads the cluster file that a state names, as it is written there.
using ClusterReader = std::function<Result<topo::Cluster>(const std::string& name)>;

// Fails with kInvalidInput that names `file`, line, key and remedy.
Result<SchedulerState> parse_state(std::string_view text, std::string_view file,
                                   const ClusterReader& read_cluster);

// The job of a map whose keys are those of a pending job of a state, without its times that count
// from now, and `more_keys`, which the caller reads. Errors stay in the document.
JobRequest read_job_request(const YamlMap& map, const std::vector<std::string>& more_keys);

// The list `queues` of the map; without queues the tree of one. Errors stay in the document.
QuotaTree read_quota_tree(const YamlDocument& document, const YamlMap& root);

// The job as an item of the list `pending`, as parse_state() reads it; lines end with a newline.
// Leaves out its class, duty, demand, deadline and times that count from now.
std::string pending_job_text(const JobRequest& job);

// For YamlMap::choice(): name i stands for the enumerator of value i.
template <typename E, std::size_t kCount>
Choices<E> choices_of(const EnumNames<kCount>& names) {
  Choices<E> choices;
  choices.reserve(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    choices.emplace_back(names[i], static_cast<E>(i));
  return choices;
}

}  // namespace regatta::sched
