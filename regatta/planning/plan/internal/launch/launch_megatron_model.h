// plan/internal/launch/launch_megatron_model.h: the model in the words of Megatron-Core, which
// Megatron-LM's flags and Megatron Bridge's configuration share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/planning/plan/internal/launch/launch_script.h"

namespace regatta::plan {

// The tokenizer's entries are padded to a multiple of this and tp: Megatron-LM's default.
inline constexpr int kVocabularyMultiple = 128;

// The activation of a gate that is clamped (ModelDetails::has_clamped_gate).
inline constexpr double kGateClamp = 7;

// The tokens of a window before and behind a query, "(127,0)".
std::string window_text(const workload::ModelShape& model);
// layer_pattern, and behind it the parts of each module that predicts: "M*ME/*E".
std::string hybrid_pattern(const workload::ModelShape& model);
// Which layers have experts, in Python: "([0]*3+[1]*58)"; "" where all have, or a pattern says it.
std::string expert_layers(const workload::ModelShape& model);

// The modules of Megatron-Core that are recomputed in blocks with experts; none for other forms.
std::vector<std::string> recomputed_modules(const workload::ModelShape& model,
                                            workload::Recompute recompute);

// The recipe of fp8: delayed scaling, but for recomputed norms and activation functions, which do
// not go with it.
std::string fp8_recipe(workload::Recompute recompute);

// How the blocks divide over the parts of the stages.
struct MegatronStages {
  int layers_per_part = 0;  // where all are equal and a stage has several parts
  int first_layers = 0;     // of the first and the last stage, where only they differ
  int last_layers = 0;
  std::string layout;  // else
};
MegatronStages megatron_stages(const workload::ModelShape& model,
                               const workload::Strategy& strategy);

// Pads to the multiple: a line for a comment, or none.
std::vector<std::string> vocabulary_notes(const LaunchInput& input);

FlagArray megatron_model_flags(const workload::ModelShape& model);
FlagArray megatron_expert_flags(const LaunchInput& input);

}  // namespace regatta::plan
