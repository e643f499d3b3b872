// Models that the framework of a launcher cannot run, whatever the strategy. DeepSpeed leaves the
// model to the user's program. Sources: megatron/training/arguments.py (validate_args: positions
// beside modules that predict), megatron/bridge/models (providers) and the models of torchtitan.
#include <string_view>

#include "regatta/model/workload/blocks.h"
#include "regatta/planning/plan/internal/launch/launch_rules.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"
#include "regatta/planning/plan/internal/launch/model_details.h"

namespace regatta::plan {
namespace {

using workload::ModelShape;
using workload::PositionEncoding;

// A part of a model that a framework lacks, and the remedy.
struct Lack {
  std::string_view what;
  std::string_view remedy;
};
constexpr Lack kNothing = {"", ""};

Lack lack_of_megatron_core(const ModelShape& model) {
  if (model.window.is_chunked) {
    return {"windows of chunks have no flag, its windows slide",
            "take another model, or launch with deepspeed"};
  }
  if (model.mtp_layers > 0 && model.positions == PositionEncoding::kLearned)
    return {"mtp_layers goes with rotary positions or none", "set mtp_layers 0"};
  return kNothing;
}

Lack lack_of_megatron(const ModelShape& model) {
  if (is_tuned(model)) {
    return {"tuning lora and packed samples are of Megatron Bridge",
            "launch with megatron-bridge, or train all weights on whole samples"};
  }
  return lack_of_megatron_core(model);
}

Lack lack_of_bridge(const ModelShape& model) {
  if (model.positions == PositionEncoding::kNone && model.layer_pattern.empty())
    return {"its provider has learned or rotary positions alone", "launch with megatron"};
  return lack_of_megatron_core(model);
}

Lack lack_of_torchtitan(const ModelShape& model) {
  constexpr std::string_view kMegatron = "launch with megatron or megatron-bridge";
  if (!are_kinds_in_order(model) || model.experts.latent > 0) {
    return {"its models here have equal layers, without windows and state spaces",
            model.window.is_chunked ? "launch with deepspeed" : kMegatron};
  }
  if (model.attention_sinks) return {"its models here have no attention_sinks", kMegatron};
  if (model.mtp_layers > 0)
    return {"its models here have no mtp_layers", "set mtp_layers 0, or launch with megatron"};
  if (is_tuned(model)) {
    return {"it trains all weights on whole samples, without tuning lora and packed samples",
            "launch with megatron-bridge"};
  }
  return kNothing;
}

Lack lack_of(Launcher launcher, const ModelShape& model) {
  switch (launcher) {
    case Launcher::kMegatron:
      return lack_of_megatron(model);
    case Launcher::kMegatronBridge:
      return lack_of_bridge(model);
    case Launcher::kTorchtitan:
      return lack_of_torchtitan(model);
    case Launcher::kDeepspeed:
      break;
  }
  return kNothing;
}

}  // namespace

Status check_launch_model(Launcher launcher, const ModelShape& model,
                          workload::Precision precision) {
  if (model.kind == workload::ModelKind::kEncoder)
    return unsupported_by(launcher, "an encoder has another training program", "take a decoder");
  if (precision == workload::Precision::kTf32)
    return unsupported_by(launcher, "tf32 has no flag", "take bf16, or fp32");
  const Lack lack = lack_of(launcher, model);
  if (!lack.what.empty()) return unsupported_by(launcher, lack.what, lack.remedy);
  return {};
}

}  // namespace regatta::plan
