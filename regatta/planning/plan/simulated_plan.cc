// Predicts one plan that the caller made: checks it first.
#include "regatta/planning/plan/simulated_plan.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/core.h>

#include "regatta/planning/plan/internal/simulate/device_network.h"
#include "regatta/planning/plan/internal/simulate/evaluate_plan.h"

namespace regatta::plan {
namespace {

Status check_placement(const topo::Cluster& cluster, const DeviceNetwork& network,
                       const workload::Strategy& strategy, const Placement& placement) {
  if (placement.size() != static_cast<std::size_t>(strategy.world_size())) {
    return Error{
        Code::kInvalidInput,
        fmt::format("placement: {} devices for the {} ranks of {}; name one per rank",
                    placement.size(), strategy.world_size(), workload::to_string(strategy))};
  }
  Placement seen;
  for (const topo::DeviceRef device : placement) {
    if (network.device_index(device) < 0) {
      return Error{Code::kInvalidInput,
                   fmt::format("placement: server {} device {} is not in cluster {}; choose from "
                               "`regatta topo`",
                               device.server.value, device.index, cluster.name)};
    }
    if (std::find(seen.begin(), seen.end(), device) != seen.end()) {
      return Error{Code::kInvalidInput,
                   fmt::format("placement: device {} comes twice; give each rank its own",
                               topo::to_string(cluster, device))};
    }
    seen.push_back(device);
  }
  return {};
}

}  // namespace

Result<Prediction> predict(const workload::Job& job, const topo::Cluster& cluster,
                           const cost::Rates& rates, const workload::Strategy& strategy,
                           const Placement& placement) {
  REGATTA_TRY_DO(check_rates(job, cluster, rates));
  REGATTA_TRY_DO(workload::micro_batches(job.model, strategy, job.global_batch));
  REGATTA_TRY(network, DeviceNetwork::build(cluster, rates));
  REGATTA_TRY_DO(check_placement(cluster, network, strategy, placement));
  return evaluate_plan({job, cluster, rates, network}, strategy, placement);
}

}  // namespace regatta::plan
