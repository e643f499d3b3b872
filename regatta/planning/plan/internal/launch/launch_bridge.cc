// A recipe of Megatron Bridge: Python that starts itself with torchrun on every server. Fields:
// megatron/bridge/training/config.py and mixed_precision.py, and the configurations of Megatron-LM
// that they extend (megatron/training/config/training_config.py).
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/planning/plan/internal/launch/launch_bridge_model.h"
#include "regatta/planning/plan/internal/launch/launch_bridge_tuning.h"
#include "regatta/planning/plan/internal/launch/launch_megatron_model.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"
#include "regatta/planning/plan/internal/launch/launch_servers.h"
#include "regatta/planning/plan/internal/launch/model_details.h"

namespace regatta::plan {
namespace {

using workload::GradientCompression;
using workload::Offload;
using workload::Precision;
using workload::Strategy;

std::string server_list(const LaunchInput& input) {
  std::string text = "# In the order of their node ranks.\nSERVERS = [";
  const std::vector<std::string>& names = input.placed.names;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i % 8 == 0 ? "\n    " : " ") + python_word(names[i]) + ",";
  return text + (names.empty() ? "]\n" : "\n]\n");
}

// The node rank of this server and the address of the first, or a sentence.
std::string place_function(const LaunchInput& input) {
  if (input.servers == 1) {
    return "def find_place():\n"
           "    return os.environ.get(\"MASTER_ADDR\", \"localhost\"), "
           "os.environ.get(\"NODE_RANK\", \"0\")\n";
  }
  return fmt::format(
      R"(def find_place():
    if SERVERS and "SLURM_STEP_ID" in os.environ and "NODE_RANK" not in os.environ:
        name = os.environ.get("SLURMD_NODENAME", "this server")
        if name not in SERVERS:
            sys.exit(f"NODE_RANK: is not set and {{name}} is none of the servers of the plan; "
                     "give srun --nodelist of --print-servers")
        os.environ["NODE_RANK"] = str(SERVERS.index(name))
        os.environ.setdefault("MASTER_ADDR", SERVERS[0])
    for name, value in (("MASTER_ADDR", "the address of the first server"),
                        ("NODE_RANK", "the number of this server, 0 to {}")):
        if not os.environ.get(name):
            sys.exit(f"{{name}}: is not set; set it to {{value}}")
    return os.environ["MASTER_ADDR"], os.environ["NODE_RANK"]
)",
      input.servers - 1);
}

std::string start_function(const LaunchInput& input) {
  std::string text = "def start():\n    address, rank = find_place()\n" + tuning_check(input.model);
  text += "    os.environ.setdefault(\"CUDA_DEVICE_MAX_CONNECTIONS\", \"1\")\n";
  if (const std::string nics = nic_names(input); !nics.empty()) {
    text += fmt::format(
        "    # NIC i serves the devices i, i + {0}, ... and is on rail i mod {1}.\n"
        "    os.environ.setdefault(\"NCCL_IB_HCA\", \"{2}\")\n",
        input.placed.nics, input.placed.rails, nics);
    if (input.placed.rails > 1) text += "    os.environ.setdefault(\"NCCL_CROSS_NIC\", \"0\")\n";
  }
  return text + fmt::format(
                    R"(    os.execvp("torchrun", [
        "torchrun", "--nnodes", "{}", "--nproc-per-node", "{}",
        "--node-rank", rank, "--master-addr", address,
        "--master-port", os.environ.get("MASTER_PORT", "29500"),
        os.path.abspath(__file__), *sys.argv[1:],
    ])
)",
                    input.servers, input.devices_per_server);
}

PythonCall training_call(const LaunchInput& input) {
  PythonCall call("TrainingConfig");
  call.add("train_iters", input.steps);
  call.add("global_batch_size", input.global_batch);
  call.add("micro_batch_size", input.strategy.micro_batch);
  return call;
}

PythonCall validation_call() {
  PythonCall call("ValidationConfig");
  call.add("eval_iters", "int(os.environ.get(\"EVAL_ITERS\", \"0\"))");
  call.add("eval_interval", "int(os.environ.get(\"EVAL_INTERVAL\", \"1000\"))");
  return call;
}

PythonCall optimizer_call(const LaunchInput& input) {
  const workload::Optimizer& adam = input.optimizer;
  PythonCall call("OptimizerConfig");
  call.add_word("optimizer", "adam");
  call.add("lr", adam.lr);
  call.add("min_lr", fmt::format("{:.6g}", adam.lr * kFinalLearningRateFraction));
  call.add("adam_beta1", adam.beta1);
  call.add("adam_beta2", adam.beta2);
  call.add("adam_eps", adam.eps);
  call.add("weight_decay", adam.weight_decay);
  call.add("clip_grad", adam.clip_norm);
  call.add_truth("use_distributed_optimizer", input.strategy.zero == 1);
  if (input.strategy.offload == Offload::kOptimizer) {
    call.add_truth("optimizer_cpu_offload", true);
    call.add("optimizer_offload_fraction", "1.0");
    call.add_truth("use_precision_aware_optimizer", true);
  }
  return call;
}

PythonCall scheduler_call(const LaunchInput& input) {
  PythonCall call("SchedulerConfig");
  call.add_word("lr_decay_style", "cosine");
  call.add("lr_decay_iters", input.steps);
  call.add("lr_warmup_iters", warmup_steps(input));
  call.add("start_weight_decay", input.optimizer.weight_decay);
  call.add("end_weight_decay", input.optimizer.weight_decay);
  call.add_word("weight_decay_incr_style", "constant");
  return call;
}

PythonCall replicas_call(const Strategy& strategy) {
  const bool is_overlapped = strategy.overlap && strategy.dp * strategy.cp > 1;
  PythonCall call("DistributedDataParallelConfig");
  call.add_truth("grad_reduce_in_fp32", strategy.compression != GradientCompression::kBf16);
  call.add_truth("overlap_grad_reduce", is_overlapped);
  call.add_truth("overlap_param_gather", is_overlapped && strategy.zero == 1);
  call.add_truth("use_distributed_optimizer", strategy.zero == 1);
  if (strategy.shard_ranks > 0) {
    call.add("num_distributed_optimizer_instances",
             strategy.dp * strategy.cp / strategy.shard_ranks);
  }
  return call;
}

PythonCall dataset_call(const LaunchInput& input) {
  PythonCall call("GPTDatasetConfig");
  call.add("seq_length", input.model.seq);
  call.add("random_seed", 1234);
  call.add_truth("reset_position_ids", false);
  call.add_truth("reset_attention_mask", false);
  call.add_truth("eod_mask_loss", false);
  // The kernels of attention mask by themselves; a mask of its own has seq x seq bytes a sample.
  call.add_truth("skip_getting_attention_mask_from_dataset", true);
  call.add("data_path", "os.environ.get(\"DATA_PATH\")");
  call.add_word("split", "9999,8,2");
  call.add_word("dataloader_type", "single");
  return call;
}

PythonCall tokenizer_call(const LaunchInput& input) {
  PythonCall call("TokenizerConfig");
  if (input.model.packed > 0) {
    call.add_word("tokenizer_type", "HuggingFaceTokenizer");
    call.add("tokenizer_model", "os.environ.get(\"TOKENIZER\")");
    return call;
  }
  call.add_word("tokenizer_type", "NullTokenizer");
  call.add("vocab_size", input.model.vocab - 1);  // it adds an entry of its own
  return call;
}

PythonCall checkpoint_call(const LaunchInput& input) {
  const std::string& folder = input.checkpoint.folder;
  const int every = input.checkpoint.every > 0 ? input.checkpoint.every : input.steps;
  const std::string otherwise = folder.empty() ? "" : ", " + python_word(folder);
  PythonCall call("CheckpointConfig");
  call.add("save", fmt::format("os.environ.get(\"SAVE\"{})", otherwise));
  call.add("load", fmt::format("os.environ.get(\"LOAD\"{})", otherwise));
  if (is_tuned(input.model)) call.add("pretrained_checkpoint", "os.environ.get(\"PRETRAINED\")");
  call.add("save_interval", fmt::format("int(os.environ.get(\"SAVE_INTERVAL\", \"{}\"))", every));
  call.add_word("ckpt_format", "torch_dist");
  return call;
}

// Field by field, as the named recipes also gather weights in fp8.
PythonCall precision_call(const LaunchInput& input) {
  const bool is_half = input.precision == Precision::kFp16;
  const bool is_whole = input.precision == Precision::kFp32;
  const char* type = is_whole ? "torch.float32" : is_half ? "torch.half" : "torch.bfloat16";
  PythonCall call("MixedPrecisionConfig");
  call.add_truth(is_whole ? "fp32" : is_half ? "fp16" : "bf16", true);
  call.add("params_dtype", type);
  call.add("pipeline_dtype", type);
  call.add_truth("grad_reduce_in_fp32", input.strategy.compression != GradientCompression::kBf16);
  if (input.precision == Precision::kFp8) {
    call.add_word("fp8", "hybrid");
    const std::string recipe = fp8_recipe(input.strategy.recompute);
    call.add_word("fp8_recipe", recipe);
    if (recipe == "delayed") call.add("fp8_amax_history_len", 1024);
    if (recipe == "delayed") call.add_word("fp8_amax_compute_algo", "max");
  } else if (input.precision == Precision::kMxfp8) {
    call.add_word("fp8", "e4m3");
    call.add_word("fp8_recipe", "mxfp8");
  } else if (input.precision == Precision::kNvfp4) {
    call.add_word("fp4", "e2m1");
    call.add_word("fp4_recipe", "nvfp4");
  }
  return call;
}

// Only some models need these.
std::string more_imports(const workload::ModelShape& model) {
  std::string text;
  const std::string activation = activation_function(model);
  if (activation == "quick_gelu")
    text += "    from megatron.core.fusions.fused_bias_geglu import quick_gelu\n";
  if (activation == "squared_relu")
    text += "    from megatron.core.activations import squared_relu\n";
  if (model.packed > 0) {
    text += "    from megatron.bridge.data.builders import GPTSFTDatasetConfig\n";
    text += "    from megatron.bridge.data.packing import PackedSequenceSpecs\n";
  }
  if (is_frozen(model)) text += "    from megatron.bridge.peft.lora import LoRA\n";
  return text;
}

std::string config_function(const LaunchInput& input) {
  PythonCall logger("LoggerConfig");
  logger.add("log_interval", 1);
  PythonCall seeds("RNGConfig");
  seeds.add("seed", 1234);
  PythonCall all("ConfigContainer");
  constexpr int kInside = 8;
  all.add("model", bridge_model(input).text(kInside));
  all.add("train", training_call(input).text(kInside));
  all.add("validation", validation_call().text(kInside));
  all.add("optimizer", optimizer_call(input).text(kInside));
  all.add("scheduler", scheduler_call(input).text(kInside));
  all.add("ddp", replicas_call(input.strategy).text(kInside));
  const PythonCall dataset =
      input.model.packed > 0 ? packed_dataset_call(input) : dataset_call(input);
  all.add("dataset", dataset.text(kInside));
  all.add("logger", logger.text(kInside));
  all.add("tokenizer", tokenizer_call(input).text(kInside));
  all.add("checkpoint", checkpoint_call(input).text(kInside));
  all.add("rng", seeds.text(kInside));
  all.add("mixed_precision", precision_call(input).text(kInside));
  if (is_frozen(input.model)) all.add("peft", adapters_call(input.model).text(kInside));
  const BridgeProvider provider = bridge_provider(input.model);
  return fmt::format(
      R"(def pretrain_config():
    import torch
{}    from megatron.bridge.models.{} import {}
    from megatron.bridge.training.config import (
        CheckpointConfig,
        ConfigContainer,
        DistributedDataParallelConfig,
        GPTDatasetConfig,
        LoggerConfig,
        OptimizerConfig,
        RNGConfig,
        SchedulerConfig,
        TokenizerConfig,
        TrainingConfig,
        ValidationConfig,
    )
    from megatron.bridge.training.mixed_precision import MixedPrecisionConfig

    return {}
)",
      more_imports(input.model), provider.module, provider.name, all.text(4));
}

std::vector<std::string> bridge_notes(const LaunchInput& input) {
  std::vector<std::string> lines = {
      "Megatron Bridge of 2026, which has ValidationConfig: run it on every server."};
  for (std::string line : start_notes(input, "train.py")) {
    for (std::size_t at = line.find("bash "); at != std::string::npos; at = line.find("bash ", at))
      line.replace(at, 5, "python3 ");
    lines.push_back(line);
  }
  lines.emplace_back(
      input.model.packed > 0
          ? "SAVE, LOAD, SAVE_INTERVAL, EVAL_ITERS and EVAL_INTERVAL set what the plan does not."
          : "DATA_PATH replaces the made-up data; SAVE, LOAD, SAVE_INTERVAL, EVAL_ITERS and "
            "EVAL_INTERVAL set the rest.");
  if (is_tuned(input.model)) {
    lines.emplace_back(input.model.packed > 0
                           ? "PRETRAINED is the checkpoint to tune, DATASET a folder with "
                             "training.jsonl, TOKENIZER its tokenizer."
                           : "PRETRAINED is the checkpoint to tune.");
  }
  if (model_details(input.model).rope_scaling == RopeScaling::kYarn &&
      !has_latent_attention(input.model)) {
    lines.emplace_back(
        "Left out: rope_scaling, of which GPTModelProvider has the fields and the plan does not.");
  }
  if (model_details(input.model).rope_scaling == RopeScaling::kLlama3) {
    lines.emplace_back(
        "Left out: rope_scaling, which GPTModelProvider lacks; a provider of Llama 3.1 has it.");
  }
  const auto add = [&](const std::vector<std::string>& more) {
    lines.insert(lines.end(), more.begin(), more.end());
  };
  add(unknown_details(input.model));
  add(vocabulary_notes(input));
  return lines;
}

}  // namespace

std::string megatron_bridge_script(const LaunchInput& input) {
  std::string script = "#!/usr/bin/env python3\n" + script_head(input, bridge_notes(input));
  script += "import os\nimport sys\n\n";
  script += server_list(input) + "\n\n" + place_function(input) + "\n\n" + start_function(input) +
            "\n\n" + config_function(input);
  return script + fmt::format(
                      R"(

def main():
    if sys.argv[1:2] == ["--print-servers"]:
        print(",".join(SERVERS))
    elif sys.argv[1:2] == ["--print-hostfile"]:
        print("\n".join(f"{{name}} slots={0}" for name in SERVERS))
    elif "LOCAL_RANK" not in os.environ:
        start()
    else:
        from megatron.bridge.training.gpt_step import forward_step
        from megatron.bridge.training.{1} import {1}

        {1}(config=pretrain_config(), forward_step_func=forward_step)


if __name__ == "__main__":
    main()
)",
                      input.devices_per_server, is_tuned(input.model) ? "finetune" : "pretrain");
}

}  // namespace regatta::plan
