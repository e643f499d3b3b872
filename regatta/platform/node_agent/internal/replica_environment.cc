#include "regatta/platform/node_agent/internal/replica_environment.h"

#include <bit>
#include <map>

#include "regatta/platform/node_agent/internal/metrics_file.h"

namespace regatta::node_agent {
namespace {

constexpr std::int64_t kPortFirst = 20000;  // below the ports that Linux gives to clients
constexpr std::int64_t kPorts = 10000;

}  // namespace

std::string device_list(std::uint32_t devices) {
  std::string list;
  for (; devices != 0; devices &= devices - 1)
    list += (list.empty() ? "" : ",") + std::to_string(std::countr_zero(devices));
  return list;
}

std::string host_list(const control::ReplicaOrder& order) {
  std::string text;
  for (const control::GangHost& host : order.hosts)
    text += host.address + " slots=" + std::to_string(host.ranks) + "\n";
  return text;
}

std::vector<std::pair<std::string, std::string>> replica_environment(
    const control::ReplicaOrder& order, const EnvironmentFacts& facts) {
  std::map<std::string, std::string> variables = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"HOME", facts.home},
      {"USER", facts.user},
      {"LOGNAME", facts.user},
      {"LANG", "C.UTF-8"},
      {"MASTER_PORT",
       std::to_string(kPortFirst + (order.key.job * 17 + order.key.attempt) % kPorts)}};
  if (!facts.interface.empty())
    for (const char* name : {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"})
      variables[name] = facts.interface;
  for (const auto& [name, value] : order.environment)
    variables[name] = value;
  variables.erase("RANK");
  variables.erase("LOCAL_RANK");
  const std::string devices = device_list(order.devices);
  variables["WORLD_SIZE"] = std::to_string(order.world_size);
  variables["LOCAL_WORLD_SIZE"] = std::to_string(order.ranks);
  variables["MASTER_ADDR"] = order.head_address;
  variables["REGATTA_JOB"] = std::to_string(order.key.job);
  variables["REGATTA_ATTEMPT"] = std::to_string(order.key.attempt);
  variables["REGATTA_REPLICA"] = std::to_string(order.key.replica);
  variables["REGATTA_NODE"] = facts.node;
  variables["REGATTA_ADDRESS"] = facts.address;
  variables[kDevicesVariable] = devices;
  variables["NODE_RANK"] = std::to_string(order.key.replica);
  variables["REGATTA_REPLICAS"] = std::to_string(order.replicas);
  variables["REGATTA_LEAF"] = std::to_string(facts.leaf);
  variables["REGATTA_GROUP"] = std::to_string(facts.group);
  if (!facts.host_file.empty()) variables["REGATTA_HOSTFILE"] = facts.host_file;
  variables[kRunVariable] = facts.run;
  variables[kMetricsVariable] = metrics_path(facts.run);
  // Also when it is empty: a replica without devices sees none.
  if (facts.device_type != "cpu") variables["CUDA_VISIBLE_DEVICES"] = devices;
  return {variables.begin(), variables.end()};
}

}  // namespace regatta::node_agent
