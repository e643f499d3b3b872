// cli/internal/job_ports.h: the source ports of a training job's connections: by a plan that puts
// connections which send at the same time on different links, by comm's own path discovery, or as
// the kernel assigns them.
#pragma once

#include <string>
#include <vector>

#include "regatta/app/report/run_result.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/runtime/agent/session.h"
#include "regatta/runtime/bench/regatta_ranks.h"

namespace regatta::cli {

// The values of --ports.
std::vector<std::string> port_choices();

struct PortChoice {
  std::string method;  // "planned", "surveyed" or "hashed"
  std::string why;     // "the switches of a lab hash by known seeds"
};
// `asked`: one of port_choices(), or empty: planned where the hash of the cluster's switches is
// known. kInvalidInput where planned is asked for and it is not.
Result<PortChoice> choose_ports(const std::string& asked, const topo::Cluster& cluster);

// For a run of this plan; null where the ranks discover paths themselves. The plan is made when the
// ranks are there, around cables of the lab that have no carrier then, and stored in `told`, which
// must outlive the run.
agent::RankPortPlanner port_planner(const PortChoice& choice, const topo::Cluster& cluster,
                                    const lab::LabInfo* lab, const workload::ModelShape& model,
                                    const workload::Strategy& strategy,
                                    report::PortAssignment& told);

// The same for ranks that call one collective: those that `task` has send to each other at the same
// time. Null where the ranks discover paths themselves.
bench::BenchPortPlanner bench_port_planner(const PortChoice& choice, const topo::Cluster& cluster,
                                           const lab::LabInfo& lab, const bench::BenchTask& task);

}  // namespace regatta::cli
