#include "regatta/platform/sched/state_file.h"

#include <cstddef>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/sched/internal/quota_yaml.h"
#include "regatta/platform/sched/internal/state_jobs.h"
#include "regatta/platform/sched/internal/state_nodes.h"

namespace regatta::sched {

Result<SchedulerState> parse_state(std::string_view text, std::string_view file,
                                   const ClusterReader& read_cluster) {
  REGATTA_TRY(document, YamlDocument::parse(text, file));
  const YamlMap root = document.root();
  root.allow({"cluster", "node", "nodes", "queues", "running", "pending"});
  SchedulerState state;
  state.snapshot.nodes = read_state_nodes(root, read_cluster);
  NodeIndex nodes;
  for (std::size_t i = 0; i < state.snapshot.nodes.size(); ++i)
    nodes.emplace(state.snapshot.nodes[i].name, static_cast<int>(i));
  if (root.has("queues")) {
    auto quotas = QuotaTree::create(read_queues(root, "queues"));
    REGATTA_TRY_DO(document.status());
    if (quotas)
      state.queue.quotas = std::move(*quotas);
    else
      root.fail("queues", quotas.error().message);
  }
  if (root.has("running"))
    for (const YamlMap& job : root.maps("running"))
      state.snapshot.running.push_back(read_running_job(job, nodes));
  if (root.has("pending"))
    for (const YamlMap& job : root.maps("pending"))
      state.queue.jobs.push_back(read_pending_job(job));
  REGATTA_TRY_DO(document.status());
  if (const Status status = check_state(state.snapshot, state.queue); !status)
    return Error{status.error().code, std::string(file) + ": " + status.error().message};
  return state;
}

}  // namespace regatta::sched
