// Rows of Megatron-LM and Megatron-DeepSpeed.
#include <map>

#include "regatta/planning/replay/internal/published_run_rows.h"

namespace regatta::replay {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): 200_Gbps reads as the source
using workload::Precision;
using workload::Recompute;

workload::Strategy strategy_of(RowReader& reader) {
  return {.tp = reader.whole("tp"),
          .pp = reader.whole("pp"),
          .dp = reader.whole("dp"),
          .micro_batch = reader.whole("mbs"),
          .recompute = Recompute::kFull};
}

workload::ModelShape gpt_of(RowReader& reader, int heads, int seq, int vocab) {
  return gpt(reader.whole("layers"), reader.whole("hidden"), heads, seq, vocab);
}

PublishedRun megatron_lm(RowReader& reader, int heads, const char* stack) {
  PublishedRun run;
  run.model = gpt_of(reader, heads, 2048, 51200);
  run.precision = Precision::kFp16;
  run.stack = stack;
  run.server = server_of("dgx-a100-80g");
  return run;
}

int bloom_heads(RowReader& reader, int hidden) {
  if (reader.has("heads")) return reader.whole("heads");
  return hidden == 12288 || hidden == 14400 ? 96 : 64;
}

// Operations of a step as Narayanan et al. count them (SC'21, equation 3), with recomputation.
double operations(const workload::ModelShape& model, double samples) {
  const double h = model.hidden;
  const double s = model.seq;
  const double l = model.layers;
  return 96 * samples * s * l * h * h * (1 + s / (6 * h) + model.vocab / (16 * l * h));
}

// The models of SC'21's table 2: those of table 1 with 96 and 105 layers.
workload::ModelShape table2_model(double billions) {
  return billions < 300 ? gpt(96, 12288, 96, 2048, 51200) : gpt(105, 20480, 128, 2048, 51200);
}

}  // namespace

std::vector<PublishedRun> vtrain_row(RowReader& reader) {
  if (reader.text("iter_ms").empty()) return {};
  PublishedRun run;
  run.model = gpt_of(reader, reader.whole("heads"), reader.whole("seq"), 51200);
  run.strategy = strategy_of(reader);
  run.global_batch = reader.whole("gbs");
  run.precision = Precision::kFp16;
  run.stack = "megatron-deepspeed-fp16";
  run.server = server_of("dgx-a100-80g", 4, 200_Gbps);
  run.measured = reader.positive("iter_ms") * 1e-3;
  return {run};
}

std::vector<PublishedRun> bloom_row(RowReader& reader) {
  // ZeRO 0 is the one row that its set flags as not to be used.
  if (reader.text("zero_stage") == "0") return {};
  PublishedRun run;
  const int hidden = reader.whole("hidden");
  run.model = gpt_of(reader, bloom_heads(reader, hidden), 2048, 250880);
  run.model.positions = workload::PositionEncoding::kNone;
  run.strategy = strategy_of(reader);
  // One row states a dp that its 320 devices cannot have.
  run.strategy.dp = reader.whole("gpus") / (run.strategy.tp * run.strategy.pp);
  run.strategy.zero = 1;
  run.global_batch = reader.whole("gbs");
  run.stack = "megatron-deepspeed-bf16";
  run.server = server_of("dgx-a100-80g", 4, 100_Gbps);
  std::vector<PublishedRun> runs;
  if (reader.has("sec_per_iter")) {
    run.measured = reader.positive("sec_per_iter");
    runs.push_back(run);
  }
  if (reader.has("mem_gb")) {
    // nvidia-smi counts in 2^30 bytes.
    run.measured = reader.positive("mem_gb") * (1 << 30);
    run.quantity = MeasuredQuantity::kMemory;
    runs.push_back(run);
  }
  return runs;
}

std::vector<PublishedRun> korthikanti_time_row(RowReader& reader) {
  PublishedRun run = megatron_lm(reader, reader.whole("heads"), "megatron-lm-2022");
  run.strategy = strategy_of(reader);
  interleave(run.strategy, reader.whole("interleave"));
  run.strategy.sequence_parallel = reader.text("recompute") != "full";
  if (run.strategy.sequence_parallel) run.strategy.recompute = Recompute::kSelective;
  run.global_batch = reader.whole("gbs");
  run.measured = reader.positive("iter_s");
  return {run};
}

// The jobs of table 5; figure 7's shares are of what figure 1 shows without any of it.
std::vector<PublishedRun> korthikanti_memory_row(RowReader& reader) {
  struct Job {
    workload::ModelShape model;
    int pp;
    int micro_batch;
    int parts;
    int samples;
  };
  const std::map<std::string, Job> jobs = {
      {"22B", {gpt(48, 6144, 64, 2048, 51200), 1, 4, 1, 4}},
      {"175B", {gpt(96, 12288, 96, 2048, 51200), 8, 1, 3, 64}},
      {"530B", {gpt(105, 20480, 128, 2048, 51200), 35, 1, 3, 280}},
      {"1T", {gpt(128, 25600, 160, 2048, 51200), 64, 1, 1, 512}}};
  const auto found = jobs.find(reader.text("model"));
  if (found == jobs.end()) {
    reader.whole("model");
    return {};
  }
  const Job& job = found->second;
  PublishedRun run;
  run.model = job.model;
  run.strategy = {.tp = 8, .pp = job.pp, .micro_batch = job.micro_batch};
  interleave(run.strategy, job.parts);
  run.global_batch = job.samples;
  run.precision = Precision::kFp16;
  run.stack = "megatron-lm-2022";
  run.server = server_of("dgx-a100-80g");
  constexpr double kGib = 1 << 30;
  std::vector<PublishedRun> runs;
  run.quantity = MeasuredQuantity::kState;
  run.measured = reader.positive("param_opt_gib") * kGib;
  run.model.vocab = 8;  // figure 1 counts the blocks alone
  runs.push_back(run);
  run.model.vocab = job.model.vocab;
  run.quantity = MeasuredQuantity::kActivations;
  const double whole = reader.positive("act_none_gib") * kGib;
  const auto add = [&](bool sequence_parallel, Recompute recompute, double measured) {
    run.strategy.sequence_parallel = sequence_parallel;
    run.strategy.recompute = recompute;
    run.measured = measured;
    runs.push_back(run);
  };
  add(false, Recompute::kNone, whole);
  add(true, Recompute::kSelective, reader.positive("act_seqsel_gib") * kGib);
  add(true, Recompute::kNone, whole * reader.positive("fig7_seq") / 100);
  add(false, Recompute::kSelective, whole * reader.positive("fig7_sel") / 100);
  add(false, Recompute::kFull, whole * reader.positive("fig7_full") / 100);
  return runs;
}

std::vector<PublishedRun> megatron_row(RowReader& reader) {
  PublishedRun run = megatron_lm(reader, reader.whole("heads"), "megatron-lm-2021");
  run.strategy = {.tp = reader.whole("tp"),
                  .pp = reader.whole("pp"),
                  .dp = reader.whole("dp"),
                  .micro_batch = 0,
                  .recompute = Recompute::kFull};
  if (run.strategy.pp > 1) interleave(run.strategy, 2);
  run.global_batch = reader.whole("gbs");
  run.measured = reader.positive("step_s_derived");
  return {run};
}

std::vector<PublishedRun> zero3_row(RowReader& reader) {
  PublishedRun run;
  run.model = table2_model(reader.positive("params_b"));
  const int gpus = reader.whole("gpus");
  const int model_parallel = reader.whole("model_parallel");
  const bool is_zero = model_parallel == 1;
  run.strategy = {.tp = is_zero ? 1 : 8,
                  .pp = is_zero ? 1 : model_parallel / 8,
                  .dp = gpus / model_parallel,
                  .micro_batch = reader.whole("mbs"),
                  .recompute = Recompute::kFull,
                  .zero = is_zero ? 3 : 0};
  // As in table 1; stages of 8 and 3 blocks allow it.
  if (!is_zero) interleave(run.strategy, run.model.layers == 96 ? 2 : 3);
  run.global_batch = reader.whole("gbs");
  run.precision = Precision::kFp16;
  run.stack = is_zero ? "deepspeed-zero3-fp16" : "megatron-lm-2021";
  run.server = server_of("dgx-a100-80g");
  run.measured =
      operations(run.model, run.global_batch) / (reader.positive("tflops_gpu") * 1e12 * gpus);
  return {run};
}

}  // namespace regatta::replay
