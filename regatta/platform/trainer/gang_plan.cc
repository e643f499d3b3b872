#include "regatta/platform/trainer/gang_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/json.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/topo/cluster_yaml.h"

namespace regatta::trainer {
namespace {

// The rate of every NIC: a rank's node does not say how fast its network is.
constexpr const char* kNicRate = "10Gbps";

// The members of each node, in the order of ranks; nodes in the order of their first rank.
std::vector<std::vector<int>> members_by_node(const std::vector<GangMember>& members) {
  std::vector<std::vector<int>> nodes;
  std::map<std::string, std::size_t> index;
  for (const GangMember& member : members) {
    const auto [found, is_new] = index.try_emplace(member.node, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[found->second].push_back(member.rank);
  }
  return nodes;
}

// Whole per cent, so that equal servers have one type.
int core_percent(const GangMember& member, const std::vector<GangMember>& members) {
  const auto count = std::count_if(members.begin(), members.end(), [&](const GangMember& other) {
    return other.host == member.host;
  });
  return std::clamp(static_cast<int>(100 * member.cores / count), 1, 100);
}

// Degrees that the parts of a checkpoint depend on.
Status keep_degrees(workload::Job& job, std::string_view manifest) {
  REGATTA_TRY(reader, JsonReader::parse(manifest, "checkpoint"));
  const workload::Strategy saved = workload::read_strategy(reader.at("strategy"));
  REGATTA_TRY_DO(reader.status());
  job.strategy.tp = saved.tp;
  job.strategy.pp = saved.pp;
  return {};
}

}  // namespace

nlohmann::json to_json(const GangMember& member) {
  return {{"rank", member.rank},
          {"node", member.node},
          {"host", member.host},
          {"cores", member.cores},
          {"address", member.address}};
}

Result<GangMember> parse_member(std::string_view line) {
  REGATTA_TRY(reader, JsonReader::parse(line, "member"));
  GangMember member;
  reader.read("rank", member.rank, IntRange{0, topo::kMaxStartedServers * 64});
  reader.read("node", member.node);
  reader.read("host", member.host);
  reader.read("cores", member.cores, IntRange{1, 4096});
  reader.read("address", member.address);
  REGATTA_TRY_DO(reader.status());
  return member;
}

Result<topo::Cluster> gang_cluster(const std::vector<GangMember>& members) {
  const auto nodes = members_by_node(members);
  std::set<std::string> types;
  std::string servers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int percent = core_percent(at(members, nodes[i].front()), members);
    const std::string type = fmt::format("cpu-{}-{}", nodes[i].size(), percent);
    types.insert(fmt::format(
        "  {}: {{devices: {{count: {}, type: cpu, cpu_share: {}%}}, intra: {{kind: shm}}, nics: "
        "{{count: 1, rate: {}}}}}\n",
        type, nodes[i].size(), percent, kNicRate));
    servers += fmt::format("  - {{name: s{}, type: {}}}\n", i, type);
  }
  std::string text = "name: gang\nserver_types:\n";
  for (const std::string& type : types)
    text += type;
  if (nodes.size() > 1)
    text += fmt::format("fabric: {{tiers: [leaf], servers_per_leaf: {}}}\n", nodes.size());
  return topo::parse_cluster(text + "servers:\n" + servers, "gang");
}

Result<GangPlan> plan_gang(workload::Job job, const std::vector<GangMember>& members,
                           std::string_view resumed) {
  GangPlan made;
  REGATTA_TRY(cluster, gang_cluster(members));
  made.cluster = std::move(cluster);
  made.resumes = !resumed.empty();
  if (made.resumes) REGATTA_TRY_DO(keep_degrees(job, resumed));
  const cost::Rates rates = cost::described_rates(made.cluster);
  REGATTA_TRY(search, plan::search_simulated_plans(job, made.cluster, rates));
  made.plan = std::move(search.ranked.front());
  const auto nodes = members_by_node(members);
  for (const topo::DeviceRef& device : made.plan.placement)
    made.member_of_rank.push_back(at(at(nodes, device.server.value), device.index));
  return made;
}

std::vector<nlohmann::json> worker_specs(const GangPlan& plan, const workload::Job& job,
                                         const std::vector<GangMember>& members,
                                         const std::string& token) {
  nlohmann::json names = nlohmann::json::array();
  for (std::size_t rank = 0; rank < plan.member_of_rank.size(); ++rank)
    names.push_back(fmt::format("rank {} (rank {} of the job, node {})", rank,
                                plan.member_of_rank[rank],
                                at(members, plan.member_of_rank[rank]).node));
  std::vector<nlohmann::json> specs(members.size());
  for (std::size_t rank = 0; rank < plan.member_of_rank.size(); ++rank) {
    const GangMember& member = at(members, plan.member_of_rank[rank]);
    const topo::DeviceRef device = plan.plan.placement[rank];
    at(specs, member.rank) = {{"job", workload::job_to_json(job)},
                              {"strategy", workload::strategy_to_json(plan.plan.strategy)},
                              {"resume", plan.resumes},
                              {"trace_from_step", 0},
                              {"trace_to_step", 0},
                              {"flight_dir", ""},
                              {"rank", rank},
                              {"world_size", plan.member_of_rank.size()},
                              {"rank_names", names},
                              {"server", member.node},
                              {"address", member.address},
                              {"link_rate_Bps", plan.cluster.type_of(device.server).nic_rate.value},
                              {"device_index", device.index},
                              {"cpu_share", 0.0},
                              {"compute_cgroup", ""},
                              {"job_token", token}};
  }
  return specs;
}

nlohmann::json prediction_json(const GangPlan& plan, const workload::Job& job) {
  const plan::Prediction& prediction = plan.plan.prediction;
  const double tokens = static_cast<double>(job.global_batch) * job.model.seq;
  return {{"step_time_s", prediction.step_time.value},
          {"tokens_per_s", tokens / prediction.step_time.value},
          {"memory_bytes", prediction.memory.total().value},
          {"plan", workload::to_string(plan.plan.strategy)},
          {"rates", "described"}};
}

}  // namespace regatta::trainer
