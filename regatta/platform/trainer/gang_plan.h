// trainer/gang_plan.h: the plan of a training job on the devices that its gang has: the ranks of
// the platform as a cluster, the best plan on it, and what each rank is to run. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::trainer {

// A rank of the gang, as it introduces itself to rank 0.
struct GangMember {
  int rank = 0;
  std::string node;     // ranks with the same name exchange through memory
  std::string host;     // the machine's boot: nodes of one machine share its cores
  int cores = 1;        // of that machine
  std::string address;  // at which other ranks reach this one
};
nlohmann::json to_json(const GangMember& member);
// kInvalidInput names the key.
Result<GangMember> parse_member(std::string_view line);

// The members' nodes as servers of CPU devices, one for each member, below one leaf: a member has
// its share of the machine's cores, at most one. `members` by rank, at least one.
Result<topo::Cluster> gang_cluster(const std::vector<GangMember>& members);

struct GangPlan {
  topo::Cluster cluster;
  plan::SimulatedPlan plan;
  std::vector<int> member_of_rank;  // of the training: the member on its device
  bool resumes = false;
};

// The fastest plan on all members. `resumed`: the text of a checkpoint's manifest, whose tensor and
// pipeline degrees are kept; "": none. kInvalidInput where nothing fits.
Result<GangPlan> plan_gang(workload::Job job, const std::vector<GangMember>& members,
                           std::string_view resumed);

// The first line of the worker of each member, by member. `token`: of the gang's communicator.
std::vector<nlohmann::json> worker_specs(const GangPlan& plan, const workload::Job& job,
                                         const std::vector<GangMember>& members,
                                         const std::string& token);

// {"step_time_s", "tokens_per_s", "memory_bytes", "plan", "rates"}: what the plan promises.
nlohmann::json prediction_json(const GangPlan& plan, const workload::Job& job);

}  // namespace regatta::trainer
