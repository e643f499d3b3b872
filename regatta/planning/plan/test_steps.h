// plan/test_steps.h: the step on GPUs that the tests of its memory change: GPT-3 175B on servers of
// eight A100.
#pragma once

#include <vector>

#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/internal/estimate/stage_memory.h"

namespace regatta::plan {

// Owns what an EstimateInput refers to.
struct GpuStep {
  workload::ModelShape model = workload::find_model_preset("gpt3-175b")->model;
  workload::Strategy strategy;
  int micro_batches = 32;
  topo::ServerType server = *topo::find_server_preset("dgx-a100-80g");
  const cost::SoftwareStack* stack = cost::find_software_stack("megatron-core");

  EstimateInput input() const {
    return {.model = model,
            .strategy = strategy,
            .global_batch = micro_batches * strategy.dp * strategy.micro_batch,
            .server = server,
            .stack = *stack};
  }
  std::vector<cost::GpuMemory> stages() const {
    return memory_by_stage(input(), machine_model(input()), micro_batches);
  }
};

}  // namespace regatta::plan
