#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/ids.h"
#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

using nlohmann::json;

Result<Job> job_from_json(const json& object) {
  const JsonReader reader(object, "job");
  return reader.finish(read_job(reader));
}

Result<ModelShape> model_from_json(const json& object) {
  const JsonReader reader(object, "model");
  return reader.finish(read_model(reader));
}

Result<Strategy> strategy_from_json(const json& object) {
  const JsonReader reader(object, "strategy");
  return reader.finish(read_strategy(reader));
}

Job full_job() {
  Job job;
  job.name = "all";
  job.model = {.kind = ModelKind::kGpt,
               .preset = "gpt2-small",
               .layers = 12,
               .hidden = 768,
               .heads = 12,
               .ffn_hidden = 3072,
               .seq = 1024,
               .vocab = 50304,
               .activation = Activation::kGelu,
               .tied_embeddings = true};
  job.data_text = "/corpus \"quoted\"";
  job.global_batch = 64;
  job.precision = Precision::kBf16;
  job.optimizer.lr = 0.1 + 0.2;  // no short decimal
  job.steps = 100;
  job.seed = std::numeric_limits<std::uint64_t>::max();
  job.strategy.tp = 4;
  job.strategy.recompute = Recompute::kFull;
  job.strategy.overlap = false;
  job.strategy.compression = GradientCompression::kPowerSgd;
  job.placement = {"s0/0", "s0/1"};
  job.checkpoint = {.folder = "ckpt", .every = 10};
  return job;
}

TEST(JobJson, GivesTheJobBack) {
  const Job job = full_job();
  const std::string text = job_to_json(job).dump();
  const auto read = job_from_json(json::parse(text));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(job_to_json(*read).dump(), text);
  EXPECT_EQ(read->optimizer.lr, job.optimizer.lr);
  EXPECT_EQ(read->seed, job.seed);
  EXPECT_EQ(read->strategy.tp, 4);
  EXPECT_FALSE(read->strategy.pp.has_value());
  EXPECT_EQ(read->strategy.overlap, false);
  EXPECT_EQ(read->strategy.compression, GradientCompression::kPowerSgd);
  EXPECT_EQ(read->placement, job.placement);
}

TEST(JobJson, NamesTheKeyThatIsWrong) {
  json object = job_to_json(full_job());
  object["model"].erase("heads");
  EXPECT_EQ(job_from_json(object).error().message, "job: model.heads: missing");
  object = job_to_json(full_job());
  object["steps"] = "ten";
  EXPECT_EQ(job_from_json(object).error().message,
            "job: steps: expected an integer, found the string \"ten\"");
  object["steps"] = 1e18;
  EXPECT_FALSE(job_from_json(object).has_value());
  object["steps"] = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(job_from_json(object).error().message,
            "job: steps: expected an integer, found 18446744073709551615");
  EXPECT_EQ(job_from_json(json::array()).error().message, "job: expected an object, found a list");
  object = job_to_json(full_job());
  object["placement"] = {1, 2};
  EXPECT_EQ(job_from_json(object).error().message, "job: placement[0]: expected a string, found 1");
  object = job_to_json(full_job());
  object["precision"] = "fp64";
  EXPECT_EQ(
      job_from_json(object).error().message,
      "job: precision: expected one of fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4, found the string "
      "\"fp64\"");
}

// Any job that the parsers may give: every key takes part, in every kind.
class RandomJobs {
 public:
  explicit RandomJobs(unsigned seed) : engine_(seed) {}

  Job job() {
    Job job;
    job.name = "job " + std::to_string(number(0, 999));
    job.model = model();
    if (coin()) job.model.adapters = {.rank = number(1, 99), .qkv = true, .fc2 = coin()};
    job.data_text = coin() ? "" : "/corpus \"quoted\" \xc3\xa9";
    job.global_batch = number(1, 10'000);
    job.precision = one_of(kPrecisions);
    job.optimizer.lr = 1.0 / number(1, 1000);
    job.steps = coin() ? 0 : number(1, 1000);
    job.seed = engine_();
    job.strategy = request();
    if (coin()) job.placement = {"s0/0", "s1/3"};
    if (coin()) job.checkpoint = {.folder = "ckpt", .every = number(0, 9)};
    return job;
  }

  StrategyRequest request() {
    StrategyRequest request;
    for (const auto key :
         {&StrategyRequest::tp, &StrategyRequest::pp, &StrategyRequest::dp, &StrategyRequest::cp,
          &StrategyRequest::ep, &StrategyRequest::micro_batch, &StrategyRequest::virtual_stages})
      request.*key = maybe(number(1, 64));
    request.zero = maybe(number(0, 3));
    request.shard_ranks = maybe(number(0, 8));
    request.recompute = maybe(one_of(kRecomputes));
    request.schedule = maybe(one_of(kPipelineSchedules));
    request.context = maybe(one_of(kContextParallelisms));
    request.offload = maybe(one_of(kOffloads));
    request.compression = maybe(one_of(kGradientCompressions));
    request.sequence_parallel = maybe(coin());
    request.overlap = maybe(coin());
    if (coin()) {
      request.stage_layers.emplace();
      for (int stage = request.pp.value_or(number(1, 4)); stage > 0; --stage)
        request.stage_layers->push_back(number(1, 64));
    }
    // As the parser completes it.
    if (request.stage_layers && !request.pp)
      request.pp = static_cast<int>(request.stage_layers->size());
    if (request.virtual_stages.value_or(1) > 1 && !request.schedule)
      request.schedule = PipelineSchedule::kInterleaved;
    return request;
  }

  ModelShape model() {
    ModelShape model;
    if (coin()) model.kind = ModelKind::kEncoder;
    model.layers = number(1, 128);
    model.heads = 4 * number(1, 16);
    model.hidden = model.heads * 8 * number(1, 16);
    model.ffn_hidden = number(1, 99'999);
    model.seq = number(1, 99'999);
    model.vocab = number(1, 99'999);
    model.activation = one_of(kActivationKinds);
    model.positions = one_of(kPositionEncodings);
    model.norm = one_of(kNormKinds);
    model.tied_embeddings = coin();
    model.linear_biases = coin();
    model.qkv_biases = coin();
    if (model.positions == PositionEncoding::kRotary) model.rope_theta = number(1, 1'000'000);
    model.norm_eps = 1.0 / number(1, 1'000'000);
    if (coin()) {
      model.latent = {number(0, 9), number(1, 9), number(1, 9), number(1, 9), number(1, 9)};
    } else {
      if (coin()) model.kv_heads = model.heads / 4;
      if (coin()) model.head_dim = model.hidden / model.heads + 1;
    }
    if (coin()) {
      model.experts = {.count = number(8, 64),
                       .shared = number(0, 2),
                       .top_k = number(1, 8),
                       .ffn_hidden = number(1, 999),
                       .latent = number(0, 99),
                       .dense_layers = number(0, model.layers),
                       .every = number(1, 3),
                       .capacity = number(0, 8) / 4.0,
                       .imbalance = 1 + number(0, 8) / 7.0};
    }
    mix_layers(model);
    return model;
  }

 private:
  void mix_layers(ModelShape& model) {
    model.qk_norms = coin();
    model.attention_sinks = coin();
    model.mtp_layers = number(0, 2);
    model.packed = number(0, model.seq);
    if (model.kind == ModelKind::kGpt && coin())
      model.window = {.tokens = number(1, 999), .is_chunked = coin(), .full_every = number(0, 4)};
    if (coin()) return;
    model.window = {};
    model.experts.every = 1;
    model.experts.dense_layers = 0;
    const std::string letters = has_experts(model) ? "M*-E" : "M*-";
    model.layer_pattern = has_experts(model) ? "ME" : "M";
    while (static_cast<int>(model.layer_pattern.size()) < model.layers)
      model.layer_pattern += at(letters, number(0, static_cast<int>(letters.size()) - 1));
    model.layers = static_cast<int>(model.layer_pattern.size());
    model.state_space = {.heads = 8 * number(1, 16),
                         .head_dim = number(1, 128),
                         .state = number(1, 256),
                         .groups = 1 << number(0, 3),
                         .conv = number(1, 4),
                         .chunk = number(1, 256)};
  }

  int number(int low, int high) { return std::uniform_int_distribution(low, high)(engine_); }
  bool coin() { return number(0, 1) == 1; }
  template <typename T>
  std::optional<T> maybe(T value) {
    return coin() ? std::optional<T>(value) : std::nullopt;
  }
  template <typename E, std::size_t kCount>
  E one_of(const std::array<E, kCount>& values) {
    return at(values, number(0, static_cast<int>(kCount) - 1));
  }

  std::mt19937 engine_;
};

TEST(JobJson, GivesEveryRandomJobBack) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const Job job = RandomJobs(seed).job();
    const auto read = job_from_json(json::parse(job_to_json(job).dump()));
    ASSERT_TRUE(read.has_value()) << "seed " << seed << ": " << read.error().message;
    EXPECT_EQ(*read, job) << "seed " << seed;
    const Strategy strategy = requested(job.strategy);
    EXPECT_EQ(*strategy_from_json(strategy_to_json(strategy)), strategy) << "seed " << seed;
  }
}

// JSON is YAML: what is written for programs may be put into a job file.
TEST(JobJson, WritesModelsAndStrategiesInTheWordsOfTheJobFile) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    RandomJobs jobs(seed);
    const ModelShape model = jobs.model();
    json written = model_to_json(model);
    written.erase("preset");
    const auto job =
        parse_job("name: x\nglobal_batch: 1\nmodel: " + written.dump() + "\n", "job.yaml");
    ASSERT_TRUE(job.has_value()) << "seed " << seed << ": " << job.error().message;
    EXPECT_EQ(job->model, model) << "seed " << seed << written.dump();
    const StrategyRequest request = jobs.request();
    const std::string text = request_to_json(request).dump();
    if (text == "{}") continue;
    const auto parsed = parse_strategy(text, "--strategy");
    ASSERT_TRUE(parsed.has_value()) << "seed " << seed << ": " << parsed.error().message;
    EXPECT_EQ(*parsed, request) << "seed " << seed << text;
  }
}

TEST(ModelJson, RefusesWhatNoModelHas) {
  const auto refusal = [](const char* key, const json& value) {
    json object = model_to_json(full_job().model);
    object[key] = value;
    const auto model = model_from_json(object);
    return model ? "none" : model.error().message;
  };
  EXPECT_EQ(refusal("kv_heads", 5), "model: kv_heads: does not divide the heads");
  EXPECT_EQ(refusal("head_dim", -1), "model: head_dim: expected an integer, at least 0, found -1");
  EXPECT_EQ(refusal("kind", "moe"), "model: experts: missing");
  EXPECT_EQ(refusal("kind", "rnn"),
            "model: kind: expected one of gpt, encoder, moe, found the string \"rnn\"");
  EXPECT_EQ(refusal("experts", 8), "model: kind: gpt has no experts; write moe");
  EXPECT_EQ(refusal("norm", "batch"),
            "model: norm: expected one of layernorm, rmsnorm, found the string \"batch\"");
  EXPECT_EQ(refusal("kv_lora_rank", 8), "model: q_lora_rank: missing");
  EXPECT_EQ(refusal("ffn_hidden", 2'000'000'000),
            "none");  // large, but countable
  EXPECT_EQ(refusal("layers", 2'000'000'000), "model: the sizes make more than 10^15 parameters");
}

TEST(ModelJson, ReadsWhatEarlierVersionsWrote) {
  const json object = {{"kind", "gpt"},
                       {"preset", ""},
                       {"layers", 2},
                       {"hidden", 64},
                       {"heads", 4},
                       {"ffn_hidden", 256},
                       {"seq", 32},
                       {"vocab", 256},
                       {"activation", "gelu"},
                       {"tied_embeddings", false}};
  const auto model = model_from_json(object);
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_TRUE(is_plain_gpt(*model));
}

TEST(StrategyJson, GivesTheStrategyBack) {
  const Strategy strategy{.tp = 2,
                          .pp = 3,
                          .dp = 4,
                          .micro_batch = 5,
                          .recompute = Recompute::kFull,
                          .overlap = false,
                          .compression = GradientCompression::kAutomatic};
  EXPECT_EQ(*strategy_from_json(strategy_to_json(strategy)), strategy);
  json object = strategy_to_json(strategy);
  EXPECT_FALSE(object.contains("stage_layers"));
  object["tp"] = 0;
  EXPECT_FALSE(strategy_from_json(object).has_value());
}

TEST(StrategyJson, HoldsTheLayersOfStages) {
  const Strategy strategy{.pp = 3, .stage_layers = {7, 8, 5}};
  json object = strategy_to_json(strategy);
  EXPECT_EQ(object["stage_layers"], json({7, 8, 5}));
  EXPECT_EQ(*strategy_from_json(object), strategy);
  const auto refusal = [&](const json& value) {
    object["stage_layers"] = value;
    const auto read = strategy_from_json(object);
    return read ? "none" : read.error().message;
  };
  EXPECT_EQ(refusal(7), "strategy: stage_layers: expected a list, found 7");
  EXPECT_EQ(refusal({7, 8.5, 5}),
            "strategy: stage_layers[1]: expected an integer, at least 0, found 8.5");
  EXPECT_EQ(refusal({7, 1LL << 40, 5}),
            "strategy: stage_layers[1]: expected an integer, at least 0, found 1099511627776");
  EXPECT_EQ(refusal({7, 8}),
            "strategy: stage_layers: is not one number for each stage, or for each part");
  EXPECT_EQ(refusal({7, 0, 8}), "strategy: stage_layers: is 0 for a stage; a stage needs a layer");
}

TEST(StrategyJson, HoldsTheLayersOfParts) {
  const Strategy strategy{.pp = 2,
                          .schedule = PipelineSchedule::kInterleaved,
                          .virtual_stages = 2,
                          .stage_layers = {7, 8, 5, 0}};
  json object = strategy_to_json(strategy);
  EXPECT_EQ(*strategy_from_json(object), strategy);
  object["virtual_stages"] = 3;
  EXPECT_FALSE(strategy_from_json(object).has_value());
}

TEST(TimelineJson, GivesTheSpansBack) {
  const Timeline timeline = {
      {Rank{0}, Phase::kForward, 3, 1, -1, false, {0.25}, {1e-6}},
      {Rank{7}, Phase::kDpComm, 3, -1, 4, true, {0.5}, {0.125}},
  };
  const auto read = timeline_from_json(timeline_to_json(timeline));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[1].phase, Phase::kDpComm);
  EXPECT_EQ((*read)[1].rank, Rank{7});
  EXPECT_TRUE((*read)[1].background);
  EXPECT_EQ((*read)[0].duration.value, 1e-6);
  EXPECT_EQ(timeline_to_json(*read), timeline_to_json(timeline));
  json broken = timeline_to_json(timeline);
  broken[0]["phase"] = "sleeping";
  EXPECT_EQ(timeline_from_json(broken).error().message,
            "timeline: [0].phase: expected one of forward, backward, recompute, tp_comm, pp_comm, "
            "bubble, "
            "dp_comm, optimizer, other, found the string \"sleeping\"");
}

TEST(PhasesJson, HoldsEveryPhaseInSeconds) {
  PhaseTimes phases;
  phases[Phase::kForward] = {1};
  phases[Phase::kOther] = {0.5};
  const json object = phases_to_json(phases);
  EXPECT_EQ(object.size(), kPhaseCount);
  EXPECT_EQ(object["forward_s"], 1);
  EXPECT_DOUBLE_EQ(phases_from_json(object)->total().value, 1.5);
  EXPECT_EQ(phases_from_json(json::object()).error().message, "phases: forward_s: missing");
}

}  // namespace
}  // namespace regatta::workload
