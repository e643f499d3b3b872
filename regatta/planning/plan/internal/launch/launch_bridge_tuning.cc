// Fields: src/megatron/bridge/peft/lora.py, data/builders/gpt_sft.py and data/packing/config.py.
#include "regatta/planning/plan/internal/launch/launch_bridge_tuning.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/planning/plan/internal/launch/model_details.h"

namespace regatta::plan {

std::string tuning_check(const workload::ModelShape& model) {
  if (!is_tuned(model)) return "";
  std::string names = "(\"PRETRAINED\", \"the checkpoint of the model\"),";
  if (model.packed > 0) {
    names +=
        "\n                        (\"DATASET\", \"a folder with training.jsonl\"),"
        "\n                        (\"TOKENIZER\", \"a tokenizer of Hugging Face\"),";
  }
  return fmt::format(
      "    for name, value in ({}):\n"
      "        if not os.environ.get(name):\n"
      "            sys.exit(f\"{{name}}: is not set; set it to {{value}}\")\n",
      names);
}

PythonCall packed_dataset_call(const LaunchInput& input) {
  PythonCall call("GPTSFTDatasetConfig");
  call.add("dataset_root", "os.environ.get(\"DATASET\")");
  call.add("seq_length", input.model.seq);
  call.add("seed", 1234);
  call.add_word("dataloader_type", "batch");
  call.add_truth("enable_offline_packing", true);
  call.add("offline_packing_specs",
           fmt::format("PackedSequenceSpecs(packed_sequence_size={})", input.model.seq));
  call.add_truth("do_validation", false);
  call.add_truth("do_test", false);
  return call;
}

PythonCall adapters_call(const workload::ModelShape& model) {
  const workload::Adapters& adapters = model.adapters;
  std::vector<std::string> modules;
  const auto add = [&](bool has, std::vector<std::string> names) {
    if (has) modules.insert(modules.end(), names.begin(), names.end());
  };
  if (!has_latent_attention(model)) {
    add(adapters.qkv, {"linear_qkv"});
  } else {
    const bool is_short = model.latent.query_rank > 0;
    add(adapters.qkv && is_short, {"linear_q_down_proj", "linear_q_up_proj"});
    add(adapters.qkv && !is_short, {"linear_q_proj"});
    add(adapters.qkv, {"linear_kv_down_proj", "linear_kv_up_proj"});
  }
  add(adapters.proj, {"linear_proj"});
  add(adapters.fc1, {"linear_fc1"});
  add(adapters.fc2, {"linear_fc2"});
  PythonCall call("LoRA");
  call.add("target_modules", fmt::format("[\"{}\"]", join(modules, "\", \"")));
  call.add("dim", adapters.rank);
  call.add("alpha", adapters.rank);
  call.add("dropout", "0.0");
  return call;
}

}  // namespace regatta::plan
