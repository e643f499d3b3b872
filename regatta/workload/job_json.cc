#include "regatta/workload/job_json.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta::workload {
namespace {

using nlohmann::json;

// Reads the keys of one object in a row and keeps the first error.
class Reader {
 public:
  Reader(const json& object, const char* what) : object_(object), what_(what) {
    if (!object.is_object()) fail("not an object");
  }

  const std::optional<Error>& error() const { return error_; }

  void fail(const std::string& problem) {
    if (!error_) error_ = Error{Code::kInvalidInput, fmt::format("{}: {}", what_, problem)};
  }

  void read(const char* key, int& value) {
    const json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number_integer()) return fail(fmt::format("\"{}\" is not a whole number", key));
    const auto number = found->get<std::int64_t>();
    if ((found->is_number_unsigned() && number < 0) || number < std::numeric_limits<int>::min() ||
        number > std::numeric_limits<int>::max())
      return fail(fmt::format("\"{}\" is out of range", key));
    value = static_cast<int>(number);
  }
  void read(const char* key, std::uint64_t& value) {
    const json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number_unsigned()) return fail(fmt::format("\"{}\" is not a count", key));
    value = found->get<std::uint64_t>();
  }
  void read(const char* key, double& value) {
    const json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number()) return fail(fmt::format("\"{}\" is not a number", key));
    value = found->get<double>();
  }
  void read(const char* key, bool& value) {
    const json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) return fail(fmt::format("\"{}\" is not true or false", key));
    value = found->get<bool>();
  }
  void read(const char* key, std::string& value) {
    const json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_string()) return fail(fmt::format("\"{}\" is not a text", key));
    value = found->get<std::string>();
  }
  void read(const char* key, Seconds& value) { read(key, value.value); }
  void read(const char* key, Precision& value) {
    std::string word;
    read(key, word);
    if (word == "bf16") {
      value = Precision::kBf16;
    } else if (word == "fp32") {
      value = Precision::kFp32;
    } else {
      fail(fmt::format("\"{}\" is not fp32 or bf16", key));
    }
  }
  void read(const char* key, Recompute& value) {
    std::string word;
    read(key, word);
    if (word == "full") {
      value = Recompute::kFull;
    } else if (word == "none") {
      value = Recompute::kNone;
    } else {
      fail(fmt::format("\"{}\" is not none or full", key));
    }
  }
  void read(const char* key, Compression& value) {
    std::string word;
    read(key, word);
    const std::optional<Compression> named = compression_named(word);
    if (!named) fail(fmt::format("\"{}\": there is no '{}'", key, word));
    value = named.value_or(Compression::kNone);
  }
  template <typename T>
  void read(const char* key, std::optional<T>& value) {
    if (!object_.is_object() || !object_.contains(key)) return;
    T given{};
    read(key, given);
    value = given;
  }
  // The value of `key` for a reader of its own; null when it is missing.
  const json& nested(const char* key) {
    static const json nothing;
    const json* found = find(key);
    return found == nullptr ? nothing : *found;
  }
  // Takes the value of a nested Result, or its error.
  template <typename T>
  void take(T& value, Result<T> result) {
    if (result) {
      value = std::move(*result);
    } else if (!error_) {
      error_ = result.error();
    }
  }

 private:
  const json* find(const char* key) {
    if (error_) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    fail(fmt::format("\"{}\" is missing", key));
    return nullptr;
  }

  const json& object_;
  const char* what_;
  std::optional<Error> error_;
};

template <typename T>
Result<T> finish(const Reader& reader, T value) {
  if (reader.error()) return *reader.error();
  return value;
}

json optimizer_to_json(const Optimizer& optimizer) {
  return {{"lr", optimizer.lr},
          {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2},
          {"eps", optimizer.eps},
          {"weight_decay", optimizer.weight_decay},
          {"clip_norm", optimizer.clip_norm}};
}

Result<Optimizer> optimizer_from_json(const json& object) {
  Optimizer optimizer;
  Reader reader(object, "optimizer");
  reader.read("lr", optimizer.lr);
  reader.read("beta1", optimizer.beta1);
  reader.read("beta2", optimizer.beta2);
  reader.read("eps", optimizer.eps);
  reader.read("weight_decay", optimizer.weight_decay);
  reader.read("clip_norm", optimizer.clip_norm);
  return finish(reader, optimizer);
}

Result<Checkpoint> checkpoint_from_json(const json& object) {
  Checkpoint checkpoint;
  Reader reader(object, "checkpoint");
  reader.read("folder", checkpoint.folder);
  reader.read("every", checkpoint.every);
  return finish(reader, checkpoint);
}

Result<std::vector<std::string>> placement_from_json(const json& list) {
  const Error wrong{Code::kInvalidInput, "placement: not a list of texts"};
  if (!list.is_array()) return wrong;
  std::vector<std::string> placement;
  for (const json& device : list) {
    if (!device.is_string()) return wrong;
    placement.push_back(device.get<std::string>());
  }
  return placement;
}

std::string key_of(Phase phase) {
  return std::string(to_string(phase)) + "_s";
}

}  // namespace

json model_to_json(const ModelShape& model) {
  return {{"kind", "gpt"},          {"preset", model.preset},
          {"layers", model.layers}, {"hidden", model.hidden},
          {"heads", model.heads},   {"ffn_hidden", model.ffn_hidden},
          {"seq", model.seq},       {"vocab", model.vocab},
          {"activation", "gelu"},   {"tied_embeddings", model.tied_embeddings}};
}

Result<ModelShape> model_from_json(const json& object) {
  ModelShape model;
  Reader reader(object, "model");
  std::string kind;
  std::string activation;
  reader.read("kind", kind);
  reader.read("activation", activation);
  if (kind != "gpt") reader.fail("\"kind\" is not gpt");
  if (activation != "gelu") reader.fail("\"activation\" is not gelu");
  reader.read("preset", model.preset);
  reader.read("layers", model.layers);
  reader.read("hidden", model.hidden);
  reader.read("heads", model.heads);
  reader.read("ffn_hidden", model.ffn_hidden);
  reader.read("seq", model.seq);
  reader.read("vocab", model.vocab);
  reader.read("tied_embeddings", model.tied_embeddings);
  if (model.layers < 1 || model.hidden < 1 || model.heads < 1 || model.ffn_hidden < 1 ||
      model.seq < 1 || model.vocab < 1)
    reader.fail("every size must be at least 1");
  return finish(reader, model);
}

json strategy_to_json(const Strategy& strategy) {
  return {{"tp", strategy.tp},
          {"pp", strategy.pp},
          {"dp", strategy.dp},
          {"micro_batch", strategy.micro_batch},
          {"recompute", to_string(strategy.recompute)},
          {"overlap", strategy.overlap},
          {"compression", to_string(strategy.compression)}};
}

Result<Strategy> strategy_from_json(const json& object) {
  Strategy strategy;
  Reader reader(object, "strategy");
  reader.read("tp", strategy.tp);
  reader.read("pp", strategy.pp);
  reader.read("dp", strategy.dp);
  reader.read("micro_batch", strategy.micro_batch);
  reader.read("recompute", strategy.recompute);
  reader.read("overlap", strategy.overlap);
  std::optional<Compression> compression;  // plans of before it was known have none
  reader.read("compression", compression);
  strategy.compression = compression.value_or(Compression::kNone);
  if (strategy.tp < 1 || strategy.pp < 1 || strategy.dp < 1 || strategy.micro_batch < 1)
    reader.fail("every degree must be at least 1");
  return finish(reader, strategy);
}

json request_to_json(const StrategyRequest& request) {
  json object = json::object();
  if (request.tp) object["tp"] = *request.tp;
  if (request.pp) object["pp"] = *request.pp;
  if (request.dp) object["dp"] = *request.dp;
  if (request.micro_batch) object["micro_batch"] = *request.micro_batch;
  if (request.recompute) object["recompute"] = to_string(*request.recompute);
  if (request.overlap) object["overlap"] = *request.overlap;
  if (request.compression) object["compression"] = to_string(*request.compression);
  return object;
}

Result<StrategyRequest> request_from_json(const json& object) {
  StrategyRequest request;
  Reader reader(object, "strategy");
  reader.read("tp", request.tp);
  reader.read("pp", request.pp);
  reader.read("dp", request.dp);
  reader.read("micro_batch", request.micro_batch);
  reader.read("recompute", request.recompute);
  reader.read("overlap", request.overlap);
  reader.read("compression", request.compression);
  return finish(reader, request);
}

json job_to_json(const Job& job) {
  return {{"name", job.name},
          {"model", model_to_json(job.model)},
          {"data_text", job.data_text},
          {"global_batch", job.global_batch},
          {"precision", to_string(job.precision)},
          {"optimizer", optimizer_to_json(job.optimizer)},
          {"steps", job.steps},
          {"seed", job.seed},
          {"strategy", request_to_json(job.strategy)},
          {"placement", job.placement},
          {"checkpoint", {{"folder", job.checkpoint.folder}, {"every", job.checkpoint.every}}}};
}

Result<Job> job_from_json(const json& object) {
  Job job;
  Reader reader(object, "job");
  reader.read("name", job.name);
  reader.take(job.model, model_from_json(reader.nested("model")));
  reader.read("data_text", job.data_text);
  reader.read("global_batch", job.global_batch);
  reader.read("precision", job.precision);
  reader.take(job.optimizer, optimizer_from_json(reader.nested("optimizer")));
  reader.read("steps", job.steps);
  reader.read("seed", job.seed);
  reader.take(job.strategy, request_from_json(reader.nested("strategy")));
  reader.take(job.placement, placement_from_json(reader.nested("placement")));
  reader.take(job.checkpoint, checkpoint_from_json(reader.nested("checkpoint")));
  return finish(reader, job);
}

json span_to_json(const Span& span) {
  return {{"rank", span.rank.value},     {"phase", to_string(span.phase)},
          {"step", span.step},           {"micro_batch", span.micro_batch},
          {"layer", span.layer},         {"background", span.background},
          {"start_s", span.start.value}, {"duration_s", span.duration.value}};
}

Result<Span> span_from_json(const json& object) {
  Span span;
  Reader reader(object, "span");
  std::string phase;
  reader.read("rank", span.rank.value);
  reader.read("phase", phase);
  reader.read("step", span.step);
  reader.read("micro_batch", span.micro_batch);
  reader.read("layer", span.layer);
  reader.read("background", span.background);
  reader.read("start_s", span.start);
  reader.read("duration_s", span.duration);
  const std::optional<Phase> named = phase_named(phase);
  if (!named) reader.fail(fmt::format("'{}' is not a phase", phase));
  span.phase = named.value_or(Phase::kOther);
  return finish(reader, span);
}

json timeline_to_json(const Timeline& timeline) {
  json list = json::array();
  for (const Span& span : timeline)
    list.push_back(span_to_json(span));
  return list;
}

Result<Timeline> timeline_from_json(const json& list) {
  if (!list.is_array()) return Error{Code::kInvalidInput, "timeline: not a list of spans"};
  Timeline timeline;
  for (const json& item : list) {
    REGATTA_TRY(span, span_from_json(item));
    timeline.push_back(span);
  }
  return timeline;
}

json phases_to_json(const PhaseTimes& phases) {
  json object = json::object();
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    object[key_of(static_cast<Phase>(i))] = phases.times[i].value;
  return object;
}

Result<PhaseTimes> phases_from_json(const json& object) {
  PhaseTimes phases;
  Reader reader(object, "phases");
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    reader.read(key_of(static_cast<Phase>(i)).c_str(), phases.times[i]);
  return finish(reader, phases);
}

}  // namespace regatta::workload
