#include "regatta/platform/sched/state_file.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/sched/internal/quota_yaml.h"
#include "regatta/platform/sched/internal/state_jobs.h"
#include "regatta/platform/sched/internal/state_mixes.h"
#include "regatta/platform/sched/internal/state_nodes.h"

namespace regatta::sched {
namespace {

// At the queue that the message begins with, the last one of the name; else at the list.
void fail_at_queue(const YamlMap& root, const std::string& message) {
  const std::vector<YamlMap> maps = root.maps("queues");
  const YamlMap* named = nullptr;
  std::size_t length = 0;
  for (const YamlMap& map : maps) {
    const std::string name = map.text("name");
    if (!message.starts_with("queue " + name + ": ") || name.size() < length) continue;
    named = &map;
    length = name.size();
  }
  const std::string_view of_all = "queues: ";  // the list is named anyway
  if (named == nullptr)
    root.fail("queues", message.substr(message.starts_with(of_all) ? of_all.size() : 0));
  else
    named->fail("name", message);
}

// Devices of another type would be guaranteed in vain.
void check_device_types(const YamlMap& root, const ClusterSnapshot& snapshot) {
  std::set<std::string> known;
  for (const ClusterNode& node : snapshot.nodes)
    if (node.devices > 0) known.insert(node.device_type);
  const std::vector<std::string> names(known.begin(), known.end());
  for (const YamlMap& queue : root.maps("queues")) {
    if (!queue.has("device_types")) continue;
    const YamlMap types = queue.map("device_types");
    for (const std::string& type : types.keys())
      if (!known.contains(type))
        types.fail(type, "no node has devices of this type; " +
                             (names.empty() ? "leave it out" : "use " + join(names, " or ")));
  }
}

// The checks that need no other job; check_state() makes most of them too, without the line.
void check_listed_job(const YamlMap& map, const JobRequest& job, const QuotaTree& quotas,
                      std::set<std::string>& names) {
  if (const Status status = check_job(job); !status) map.fail("", status.error().message);
  if (!names.insert(job.name).second)
    map.fail("name", "another job has this name; give each a name of its own");
  const auto leaf = quotas.find_leaf(job.queue);
  if (!leaf && job.queue.empty())
    map.fail("queue", "missing; name the queue in which the job waits");
  else if (!leaf)
    map.fail("queue", leaf.error().message);
}

// How many running jobs, from the first, are right together.
int right_jobs(const ClusterSnapshot& snapshot) {
  int right = 0;
  int wrong = static_cast<int>(snapshot.running.size());
  while (wrong - right > 1) {
    const int middle = (right + wrong) / 2;
    ClusterSnapshot part = snapshot;
    part.running.resize(as_index(middle));
    (check_snapshot(part) ? right : wrong) = middle;
  }
  return right;
}

void check_nodes_and_running(const YamlMap& root, const ClusterSnapshot& snapshot) {
  const Status status = check_snapshot(snapshot);
  if (status) return;
  ClusterSnapshot part{.now = snapshot.now, .nodes = snapshot.nodes, .running = {}, .mixes = {}};
  if (!check_snapshot(part)) {
    root.fail(root.has("nodes") ? "nodes" : "cluster", status.error().message);
    return;
  }
  at(root.maps("running"), right_jobs(snapshot)).fail("replicas", status.error().message);
}

// A gang is on one of its device types, and within the level that it requires. The job and its
// replicas are right beside this.
void check_places(const YamlMap& map, const RunningJob& job,
                  const std::vector<ClusterNode>& nodes) {
  const std::vector<std::string>& types = job.request.device_types;
  const std::string* type = nullptr;
  for (const ReplicaPlacement& replica : job.replicas) {
    const ClusterNode& node = at(nodes, replica.node);
    if (replica.devices == 0) continue;
    if (!types.empty() && std::find(types.begin(), types.end(), node.device_type) == types.end())
      map.fail("replicas", fmt::format("node {} has devices of type {}, which device_types does "
                                       "not list; list it, or give another node",
                                       node.name, node.device_type));
    if (type != nullptr && *type != node.device_type)
      map.fail("replicas", fmt::format("they are on devices of types {} and {}, and a gang has one "
                                       "type; give nodes of one",
                                       *type, node.device_type));
    type = &node.device_type;
  }
  const TopologyLevel spanned = spanned_level(nodes, job.replicas);
  const TopologyLevel required = job.request.topology.required;
  if (spanned > required)
    map.fail("replicas",
             fmt::format("they are not below one {}, which topology requires; give nodes below "
                         "one, or require {}",
                         enum_name(kTopologyLevelNames, required),
                         enum_name(kTopologyLevelNames, spanned)));
}

}  // namespace

QuotaTree read_quota_tree(const YamlDocument& document, const YamlMap& root) {
  std::vector<QuotaQueue> queues = read_queues(root, "queues");
  if (!document.status()) return {};
  if (queues.empty()) root.fail("queues", "it is empty; give a queue, or leave the key out");
  auto quotas = QuotaTree::create(std::move(queues));
  if (quotas) return std::move(*quotas);
  fail_at_queue(root, quotas.error().message);
  return {};
}

Result<SchedulerState> parse_state(std::string_view text, std::string_view file,
                                   const ClusterReader& read_cluster) {
  REGATTA_TRY(document, YamlDocument::parse(text, file));
  const YamlMap root = document.root();
  root.allow({"cluster", "node", "nodes", "queues", "running", "mixes", "pending"});
  SchedulerState state;
  StateNodes nodes = read_state_nodes(root, read_cluster);
  state.snapshot.nodes = std::move(nodes.nodes);
  if (root.has("queues")) {
    state.queue.quotas = read_quota_tree(document, root);
    check_device_types(root, state.snapshot);
  }
  std::set<std::string> names;
  if (root.has("running")) {
    for (const YamlMap& map : root.maps("running")) {
      state.snapshot.running.push_back(read_running_job(map, nodes.index));
      check_listed_job(map, state.snapshot.running.back().request, state.queue.quotas, names);
    }
  }
  if (root.has("mixes")) state.snapshot.mixes = read_mixes(root, state.snapshot.nodes, nodes.index);
  if (root.has("pending")) {
    for (const YamlMap& map : root.maps("pending")) {
      state.queue.jobs.push_back(read_pending_job(map));
      check_listed_job(map, state.queue.jobs.back().request, state.queue.quotas, names);
    }
  }
  REGATTA_TRY_DO(document.status());
  check_nodes_and_running(root, state.snapshot);
  REGATTA_TRY_DO(document.status());
  if (root.has("running")) {
    const std::vector<YamlMap> maps = root.maps("running");
    for (std::size_t i = 0; i < maps.size(); ++i)
      check_places(maps[i], state.snapshot.running[i], state.snapshot.nodes);
  }
  if (root.has("mixes")) check_mixed_jobs(root, nodes.index, state.snapshot.running);
  REGATTA_TRY_DO(document.status());
  return state;
}

}  // namespace regatta::sched
