// plan/internal/launch/model_details.h: what a framework must be told of a model beside its shape:
// it changes the weights that are trained, but hardly the time or the memory of a step. It is known
// of published models, by the name of their preset.
#pragma once

#include <string>
#include <vector>

#include "regatta/model/workload/model.h"

namespace regatta::plan {

enum class RopeScaling {
  kNone,
  kLlama3,  // Grattafiori et al., 2024: slow angles are stretched
  kYarn,    // Peng et al., 2023
};

struct ModelDetails {
  bool is_known = false;  // else the rest is the usual, and was not checked
  // Rotary positions beyond the sequence that the model was first trained with.
  RopeScaling rope_scaling = RopeScaling::kNone;
  double rope_factor = 1;
  int rope_original_seq = 0;
  double yarn_mscale = 1;
  // Activations other than the usual of workload::Activation.
  bool has_squared_relu = false;  // in place of GELU
  bool has_clamped_gate = false;  // a gate of GELU by its approximation, clamped, and 1 beside it
  // The router of experts.
  bool has_sigmoid_router = false;
  bool has_router_bias = false;        // balances experts instead of a loss
  bool weighs_all_experts = false;     // the score of all of them, before the best are taken
  double router_scaling = 0;           // of the weights of a token's experts; 0: none
  std::string balancing = "aux_loss";  // as Megatron-Core names it
  double balancing_coefficient = 0.01;
};

ModelDetails model_details(const workload::ModelShape& model);

// A line of a comment for each detail that the job does not say; none for a known model.
std::vector<std::string> unknown_details(const workload::ModelShape& model);

}  // namespace regatta::plan
