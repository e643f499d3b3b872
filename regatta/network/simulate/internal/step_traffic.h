// simulate/internal/step_traffic.h: the traffic of a training step: activations between stages,
// gradients between replicas, in the order in which 1F1B pipelines compute.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/network/simulate/internal/scenario_workload.h"

namespace regatta::simulate {

// The step of `item` on the first tp dp pp devices. Each stage of each replica computes its
// micro-batches in the order of 1F1B (pipeline/pipeline_order.h); all its tensor-parallel ranks
// send when it has computed one. After its last backward pass the replicas of a stage all-reduce
// their gradients, each tensor-parallel rank in a ring of its own.
//
// Folded, such a ring is one flow: its 2 (dp - 1) steps wait for each other, so that all its
// messages soon move as fast as the slowest of them; it then takes
// 2 (dp - 1) / dp gradients / (rate of that one), and 2 (dp - 1) latencies. A ring that is slowed
// down for a part of its time only is reported too long by up to that part.
// Fails with kInvalidInput where the cluster has too few devices.
Status add_step(ScenarioWorkload& workload, const Scenario& scenario, const TrafficItem& item);

}  // namespace regatta::simulate
