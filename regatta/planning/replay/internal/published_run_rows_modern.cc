// Rows of PyTorch's FSDP and of NeMo.
#include <algorithm>
#include <map>
#include <string>

#include "regatta/model/workload/model.h"
#include "regatta/planning/replay/internal/published_run_rows.h"

namespace regatta::replay {
namespace {

using workload::ModelShape;
using workload::Precision;
using workload::Recompute;

struct Sizes {
  int layers;
  int hidden;
  int heads;
};

// scripts/train/yamls/pretrain/mpt-*.yaml of github.com/mosaicml/llm-foundry: no biases, ALiBi.
ModelShape mpt(RowReader& reader) {
  static const std::map<std::string, Sizes> sizes = {
      {"125m", {12, 768, 12}}, {"350m", {24, 1024, 16}}, {"760m", {24, 1536, 12}},
      {"1b", {24, 2048, 16}},  {"3b", {32, 2560, 20}},   {"7b", {32, 4096, 32}},
      {"13b", {40, 5120, 40}}, {"30b", {48, 7168, 56}},  {"70b", {80, 8192, 64}}};
  const auto found = sizes.find(reader.text("model"));
  if (found == sizes.end()) {
    reader.whole("model");
    return {};
  }
  const Sizes& size = found->second;
  ModelShape model = gpt(size.layers, size.hidden, size.heads, reader.whole("seq"), 50368);
  model.positions = workload::PositionEncoding::kNone;
  model.linear_biases = false;
  return model;
}

topo::ServerType mosaic_server(const std::string& gpu) {
  topo::ServerType server = server_of(gpu == "h100_80gb" ? "dgx-h100" : "dgx-a100-80g");
  if (gpu == "a100_40gb") server.device.name = "a100-sxm4-40g";
  if (gpu == "a100_40gb") server.device.memory_bandwidth = {1555e9};
  return server;
}

ModelShape preset(const char* name, int seq) {
  ModelShape model = workload::find_model_preset(name)->model;
  model.seq = seq;
  return model;
}

// Nemotron: squared ReLU, rotary positions, no biases, 256000 tokens (Parmar et al., 2024, table 1;
// NVIDIA, "Nemotron-4 340B", 2024, table 1).
ModelShape nemotron(const Sizes& sizes, int kv_heads, int seq) {
  ModelShape model = gpt(sizes.layers, sizes.hidden, sizes.heads, seq, 256000);
  model.kv_heads = kv_heads;
  model.positions = workload::PositionEncoding::kRotary;
  model.linear_biases = false;
  model.tied_embeddings = false;
  return model;
}

// Sizes of NeMo's GPT-3 5B and 20B: launcher_scripts/conf/training/gpt3 of
// github.com/NVIDIA/NeMo-Framework-Launcher.
ModelShape nemo_model(RowReader& reader, int seq) {
  const std::string name = reader.text("model");
  if (name == "GPT3-5B") return gpt(24, 4096, 32, seq, 51200);
  if (name == "GPT3-20B") return gpt(44, 6144, 48, seq, 51200);
  if (name == "GPT3-175B") return gpt(96, 12288, 96, seq, 51200);
  if (name == "LLAMA2-7B") return preset("llama2-7b", seq);
  if (name == "LLAMA2-13B") return preset("llama2-13b", seq);
  if (name == "LLAMA2-70B") return preset("llama2-70b", seq);
  if (name == "LLAMA3-8B") return preset("llama3-8b", seq);
  if (name == "LLAMA3-70B") return preset("llama3-70b", seq);
  if (name == "Nemotron-8B") return nemotron({32, 4096, 32}, 32, seq);
  if (name == "Nemotron-22B") return nemotron({40, 6144, 48}, 48, seq);
  if (name == "Nemotron-340B") return nemotron({96, 18432, 96}, 8, seq);
  reader.whole("model");
  return {};
}

PublishedRun nemo(const char* server) {
  PublishedRun run;
  run.precision = Precision::kFp8;
  run.stack = "nemo";
  run.server = server_of(server);
  run.strategy.zero = 1;
  return run;
}

}  // namespace

std::vector<PublishedRun> fsdp_row(RowReader& reader) {
  PublishedRun run;
  run.model = mpt(reader);
  const bool is_checkpointed = reader.text("act_ckpt") == "True";
  run.strategy = {.dp = reader.whole("gpus"),
                  .micro_batch = reader.whole("mbs"),
                  .recompute = is_checkpointed ? Recompute::kFull : Recompute::kNone,
                  .zero = reader.text("sharding") == "FULL_SHARD" ? 3 : 2};
  // Samples that a device takes in a step; the stated global batch of a row or two is another.
  run.global_batch = run.strategy.dp * run.strategy.micro_batch * reader.whole("grad_accum");
  if (reader.text("precision") == "amp_fp8") run.precision = Precision::kFp8;
  run.stack = "llm-foundry";
  run.server = mosaic_server(reader.text("gpu"));
  const double tokens = static_cast<double>(run.global_batch) * run.model.seq;
  run.measured = tokens / (reader.positive("tokens_s_gpu") * run.strategy.dp);
  return {run};
}

std::vector<PublishedRun> nemo_row(RowReader& reader) {
  PublishedRun run = nemo("dgx-h100");
  run.model = nemo_model(reader, reader.whole(reader.has("seq") ? "seq" : "packed_seq"));
  // Fine-tuning is on SQuAD; LoRA is beside queries, keys and values (launcher_scripts/conf/peft of
  // github.com/NVIDIA/NeMo-Framework-Launcher).
  if (reader.has("packed_seq")) run.model.packed = kSquadTokens;
  if (reader.text("task") == "LoRA") run.model.adapters = {.rank = 32, .qkv = true};
  const int gpus = reader.whole("gpus");
  workload::Strategy& strategy = run.strategy;
  strategy.tp = reader.whole("tp");
  strategy.pp = reader.whole("pp");
  strategy.cp = reader.has("cp") ? reader.whole("cp") : 1;
  strategy.dp = gpus / (strategy.tp * strategy.pp * strategy.cp);
  strategy.micro_batch = reader.whole("mbs");
  strategy.sequence_parallel = strategy.tp > 1;
  // The fine-tuning table does not state it; the other has every block apart where it states pp 4.
  if (strategy.pp > 1)
    interleave(strategy, reader.has("vp") ? reader.whole("vp") : run.model.layers / strategy.pp);
  run.global_batch = reader.whole("gbs");
  const double tokens = static_cast<double>(run.global_batch) * run.model.seq;
  run.measured = tokens / (reader.positive("tokens_s_gpu") * gpus);
  return {run};
}

// With context parallelism; the micro-batch is 1, dp what is left of the devices. Where the degrees
// that are stated leave more replicas than samples (B200, from 512 thousand tokens), cp is larger.
std::vector<PublishedRun> nemo_context_row(RowReader& reader) {
  const bool is_b200 = reader.text("section").find("B200") != std::string::npos;
  PublishedRun run = nemo(is_b200 ? "dgx-b200" : "dgx-h100");
  const int seq = reader.whole("seq_k") * 1024;
  run.model = preset(is_b200 ? "llama3-8b" : "llama2-7b", seq);
  const int gpus = reader.whole("gpus");
  run.global_batch = reader.whole("gbs");
  const double work = model_flops(run.model, run.global_batch).value;
  std::vector<PublishedRun> runs;
  workload::Strategy& strategy = run.strategy;
  if (reader.has("tflops_gpu_with_cp")) {
    strategy.tp = reader.whole("tp");
    strategy.pp = reader.whole("pp");
    strategy.cp = reader.whole("cp");
    strategy.dp = std::min(gpus / (strategy.tp * strategy.pp * strategy.cp), run.global_batch);
    strategy.cp = gpus / (strategy.tp * strategy.pp * strategy.dp);
    strategy.micro_batch = 1;
    strategy.sequence_parallel = strategy.tp > 1;
    run.measured = work / (reader.positive("tflops_gpu_with_cp") * 1e12 * gpus);
    runs.push_back(run);
  }
  return runs;
}

}  // namespace regatta::replay
