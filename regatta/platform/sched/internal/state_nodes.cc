#include "regatta/platform/sched/internal/state_nodes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

constexpr int kNodesMax = 1 << 20;
constexpr double kMilliPerCore = 1000;
constexpr NumberRange kAgo{.low = 0, .high = 1e9};

const Choices<NodeHealth>& healths() {
  static const Choices<NodeHealth> choices = {{"ready", NodeHealth::kReady},
                                              {"cordoned", NodeHealth::kCordoned},
                                              {"draining", NodeHealth::kDraining},
                                              {"failed", NodeHealth::kFailed}};
  return choices;
}

// Keys that say what a node is; where the cluster file says it, only the first two are there.
void read_amounts(const YamlMap& map, ClusterNode& node) {
  node.cpu_milli = static_cast<int>(
      std::lround(kMilliPerCore *
                  map.number_or("cpus", node.cpu_milli / kMilliPerCore, {.low = 0, .high = 1e6})));
  node.memory_mib =
      static_cast<int>(map.bytes("memory", Bytes{static_cast<long long>(node.memory_mib) << 20},
                                 {.low = 0, .high = 0x1p50})
                           .value >>
                       20);
}

void read_hardware(const YamlMap& map, ClusterNode& node) {
  node.devices = map.integer_or("devices", node.devices, {0, kNodeDevicesMax});
  node.device_type = map.text("device_type", node.device_type);
  node.device_memory_mib = static_cast<int>(
      map.bytes("device_memory", Bytes{static_cast<long long>(node.device_memory_mib) << 20},
                {.low = 0, .high = 0x1p50})
          .value >>
      20);
  node.nics = map.integer_or("nics", node.nics, {0, 64});
  node.numa_nodes = map.integer_or("numa_nodes", node.numa_nodes, {1, 64});
  node.leaf = map.integer_or("leaf", node.leaf, {0, kNodesMax});
  node.group = map.integer_or("group", node.group, {0, kNodesMax});
}

// Times before now; the moment of the state is 0.
void read_history(const YamlMap& map, ClusterNode& node) {
  node.watched_since =
      Seconds{0} - map.seconds_or("watched_for", Seconds{0} - node.watched_since, kAgo);
  if (!map.has("failed_ago")) return;
  node.failures.clear();
  for (const std::string& text : map.texts("failed_ago")) {
    const Result<Seconds> ago = parse_seconds(text);
    if (!ago || *ago > Seconds{kAgo.high}) {
      map.fail("failed_ago",
               fmt::format("'{}' is no time from 0 s to {}; write how long ago each failure was, "
                           "like [20h, 3d]",
                           printable(text, 64), format_duration({kAgo.high})));
      return;
    }
    node.failures.push_back(Seconds{0} - *ago);
  }
  std::sort(node.failures.begin(), node.failures.end());
  if (static_cast<int>(node.failures.size()) > kNodeFailuresMax)
    map.fail("failed_ago", fmt::format("there are {} failures; give the latest {}",
                                       node.failures.size(), kNodeFailuresMax));
  else if (!node.failures.empty() && node.failures.front() < node.watched_since)
    map.fail("failed_ago",
             map.has("watched_for")
                 ? fmt::format("a failure was {} ago, and the node is watched for {} alone; "
                               "correct one of them",
                               format_duration(Seconds{0} - node.failures.front()),
                               format_duration(Seconds{0} - node.watched_since))
                 : "it does not say for how long the node was seen; give watched_for, like 90d");
}

void read_health(const YamlMap& map, ClusterNode& node) {
  node.health = map.choice("health", healths(), std::optional(node.health));
  node.failures_per_day =
      map.number_or("failures_per_day", node.failures_per_day, {.low = 0, .high = 1e6});
  read_history(map, node);
  if (!map.has("failed_devices")) return;
  node.failed_devices = 0;
  for (const int device : map.integers("failed_devices", {0, std::max(0, node.devices - 1)}))
    node.failed_devices |= 1U << static_cast<unsigned>(device);
}

void add_node(const YamlMap& map, ClusterNode node, StateNodes& state) {
  if (!state.index.emplace(node.name, static_cast<int>(state.nodes.size())).second)
    map.fail("name", fmt::format("there are two nodes '{}'; give each a name of its own",
                                 printable(node.name, 64)));
  state.nodes.push_back(std::move(node));
}

// `name` and `count` stand for name0, name1, ...
void add_nodes(const YamlMap& map, StateNodes& state) {
  map.allow({"name", "count", "devices", "device_type", "device_memory", "cpus", "memory", "nics",
             "numa_nodes", "leaf", "group", "health", "failures_per_day", "failed_devices",
             "failed_ago", "watched_for"});
  ClusterNode node;
  node.name = map.text("name");
  read_amounts(map, node);
  read_hardware(map, node);
  read_health(map, node);
  if (node.devices > 0 && node.device_type.empty())
    map.fail("device_type", "a node with devices has a device type; name it, as in h100-sxm");
  const int count = map.integer_or("count", 1, {1, kNodesMax});
  if (!map.has("count")) {
    add_node(map, std::move(node), state);
    return;
  }
  for (int i = 0; i < count; ++i) {
    ClusterNode numbered = node;
    numbered.name += std::to_string(i);
    add_node(map, std::move(numbered), state);
  }
}

// Health and amounts of a node that the cluster file has; `changed`: those before it.
void change_node(const YamlMap& map, StateNodes& state, std::set<std::string>& changed) {
  map.allow({"name", "cpus", "memory", "health", "failures_per_day", "failed_devices", "failed_ago",
             "watched_for"});
  const std::string name = map.text("name");
  const auto found = state.index.find(name);
  if (found == state.index.end()) {
    map.fail("name", fmt::format("the cluster file has no server '{}'; name one of its servers",
                                 printable(name, 64)));
    return;
  }
  if (!changed.insert(name).second)
    map.fail("name",
             fmt::format("server {} is listed twice; give all its keys in one place", name));
  ClusterNode& node = at(state.nodes, found->second);
  read_amounts(map, node);
  read_health(map, node);
}

std::vector<ClusterNode> nodes_of_cluster(const YamlMap& root, const ClusterReader& read_cluster) {
  const Result<topo::Cluster> cluster = read_cluster(root.text("cluster"));
  if (!cluster) {
    root.fail("cluster", cluster.error().message);
    return {};
  }
  ClusterNode amounts;
  if (root.has("node")) {
    const YamlMap node = root.map("node");
    node.allow({"cpus", "memory"});
    read_amounts(node, amounts);
  }
  return cluster_nodes(*cluster, amounts.cpu_milli, amounts.memory_mib);
}

}  // namespace

StateNodes read_state_nodes(const YamlMap& root, const ClusterReader& read_cluster) {
  const bool has_cluster = root.has("cluster");
  StateNodes state;
  if (has_cluster) {
    state.nodes = nodes_of_cluster(root, read_cluster);
    for (std::size_t i = 0; i < state.nodes.size(); ++i)
      state.index.emplace(state.nodes[i].name, static_cast<int>(i));
  }
  if (!has_cluster && root.has("node"))
    root.fail("node", "it is for the nodes of a cluster file; give cluster, or leave it out");
  if (has_cluster && !root.has("nodes")) return state;
  const std::vector<YamlMap> maps = root.maps("nodes");
  if (maps.empty())
    root.fail("nodes", has_cluster ? "it is empty; give a node, or leave it out"
                                   : "it is empty; give a node");
  std::set<std::string> changed;
  for (const YamlMap& map : maps) {
    if (has_cluster)
      change_node(map, state, changed);
    else
      add_nodes(map, state);
    if (state.nodes.size() > static_cast<std::size_t>(kNodesMax)) {
      map.fail("count", fmt::format("there are more than {} nodes; give fewer", kNodesMax));
      break;
    }
  }
  return state;
}

}  // namespace regatta::sched
