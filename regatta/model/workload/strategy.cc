#include "regatta/model/workload/strategy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"

namespace regatta::workload {
namespace {

// By the value of the enumerator.
constexpr EnumNames<5> kRecomputeNames = {"none", "selective", "pointwise", "experts", "full"};
constexpr EnumNames<5> kScheduleNames = {"1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe"};
constexpr EnumNames<2> kContextNames = {"ring", "all-to-all"};
constexpr EnumNames<4> kOffloadNames = {"none", "optimizer", "activations", "both"};
constexpr EnumNames<8> kCompressionNames = {"none", "bf16", "fp16",     "fp8",
                                            "int8", "topk", "powersgd", "auto"};
static_assert(kRecomputeNames.size() == kRecomputes.size());
static_assert(kContextNames.size() == kContextParallelisms.size());
static_assert(kScheduleNames.size() == kPipelineSchedules.size());
static_assert(kOffloadNames.size() == kOffloads.size());
static_assert(kCompressionNames.size() == kGradientCompressions.size());

Error does_not_divide(const char* divisor, int a, const char* name, int b) {
  return {Code::kInvalidInput, fmt::format("{} {} does not divide {} {}; choose a divisor of {}",
                                           divisor, a, name, b, b)};
}

// The degree nearest to `ep` that divides the experts and, times etp, the ranks of a stage.
int nearest_ep(const ModelShape& model, const Strategy& strategy, int etp) {
  int nearest = 1;
  for (int ep = 1; ep <= model.experts.count; ++ep) {
    if (model.experts.count % ep != 0 || strategy.stage_ranks() % (ep * etp) != 0) continue;
    if (std::abs(ep - strategy.ep) <= std::abs(nearest - strategy.ep)) nearest = ep;
  }
  return nearest;
}

Error does_not_fold(const ModelShape& model, const Strategy& strategy) {
  const int etp = strategy.expert_tp();
  const int ranks = strategy.stage_ranks();
  std::string remedy;
  if (ranks % etp == 0) remedy = fmt::format("ep {}", nearest_ep(model, strategy, etp));
  if (etp > 1 && (ranks % strategy.ep == 0 || remedy.empty()))
    remedy += fmt::format("{}etp 1", remedy.empty() ? "" : ", or ");
  return {Code::kInvalidInput,
          fmt::format("ep {} x etp {}{} does not divide tp x cp x dp {}; take {}", strategy.ep, etp,
                      strategy.etp > 0 ? "" : " (as tp)", ranks, remedy)};
}

Status check_experts(const ModelShape& model, const Strategy& strategy) {
  const int etp = strategy.expert_tp();
  if (!has_experts(model)) {
    if (strategy.ep == 1 && strategy.etp <= 0) return {};
    constexpr const char* kNone = "{} {}: the model has no experts; {}";
    return Error{Code::kInvalidInput, strategy.ep > 1
                                          ? fmt::format(kNone, "ep", strategy.ep, "use ep 1")
                                          : fmt::format(kNone, "etp", etp, "leave etp out")};
  }
  if (model.experts.count % strategy.ep != 0)
    return does_not_divide("ep", strategy.ep, "experts", model.experts.count);
  if (model.experts.ffn_hidden % etp != 0)
    return does_not_divide("etp", etp, "expert_ffn_hidden", model.experts.ffn_hidden);
  if (strategy.stage_ranks() % (static_cast<long long>(strategy.ep) * etp) != 0)
    return does_not_fold(model, strategy);
  if (is_folded(strategy) && strategy.tp > 1 && !strategy.sequence_parallel) {
    return Error{Code::kInvalidInput,
                 fmt::format("etp {} with tp {}: tensor ranks that hold the same tokens would send "
                             "each of them {} times; set sequence_parallel, or leave etp out",
                             etp, strategy.tp, strategy.tp)};
  }
  return {};
}

// Tokens and experts.
Status check_sharing(const ModelShape& model, const Strategy& strategy) {
  if (needs_experts(strategy.recompute) && !has_experts(model)) {
    return Error{Code::kInvalidInput,
                 fmt::format("recompute {}: the model has no experts; take none, selective or full",
                             to_string(strategy.recompute))};
  }
  // Ranks of a ring hold a part from the front and one from the back, so that causal work is even.
  const int parts = strategy.context == ContextParallelism::kRing && strategy.cp > 1 ? 2 : 1;
  if (model.seq % (strategy.cp * parts) != 0 && parts == 1)
    return does_not_divide("cp", strategy.cp, "seq", model.seq);
  if (model.seq % (strategy.cp * parts) != 0) {
    return Error{
        Code::kInvalidInput,
        fmt::format("cp {}: a ring gives each rank two parts of a sequence, and {} parts do "
                    "not divide seq {}; choose a divisor of {}",
                    strategy.cp, strategy.cp * parts, model.seq, model.seq / 2)};
  }
  if (strategy.context == ContextParallelism::kAllToAll &&
      attention_shape(model).kv_heads % (strategy.tp * strategy.cp) != 0) {
    return does_not_divide("tp x cp", strategy.tp * strategy.cp, "kv_heads",
                           attention_shape(model).kv_heads);
  }
  if (strategy.sequence_parallel && model.seq % (strategy.cp * strategy.tp) != 0)
    return does_not_divide("tp x cp", strategy.tp * strategy.cp, "seq", model.seq);
  if (strategy.shard_ranks > 0 && strategy.dp * strategy.cp % strategy.shard_ranks != 0)
    return does_not_divide("shard_ranks", strategy.shard_ranks, "dp x cp",
                           strategy.dp * strategy.cp);
  return check_experts(model, strategy);
}

Status check_schedule(const ModelShape& model, const Strategy& strategy) {
  const bool is_interleaved = strategy.schedule == PipelineSchedule::kInterleaved;
  if (is_interleaved != (strategy.virtual_stages > 1)) {
    return Error{
        Code::kInvalidInput,
        fmt::format("schedule {} with virtual_stages {}: interleaved needs at least 2, the "
                    "others 1; change one of them",
                    to_string(strategy.schedule), strategy.virtual_stages)};
  }
  const long long parts = static_cast<long long>(strategy.pp) * strategy.virtual_stages;
  if (is_interleaved && model.layers < parts && !lists_parts(strategy)) {
    return Error{Code::kInvalidInput,
                 fmt::format("pp {} x virtual_stages {} exceeds layers {}; a part needs a layer, "
                             "so choose a product of at most {}",
                             strategy.pp, strategy.virtual_stages, model.layers, model.layers)};
  }
  if (strategy.schedule == PipelineSchedule::kZbV && model.layers < 2 * strategy.pp &&
      !lists_parts(strategy)) {
    return Error{
        Code::kInvalidInput,
        fmt::format("zb-v: twice pp {} exceeds layers {}; each of the two parts of a stage "
                    "needs a layer",
                    strategy.pp, model.layers)};
  }
  if (strategy.schedule == PipelineSchedule::kDualPipe && strategy.pp % 2 != 0) {
    return Error{Code::kInvalidInput,
                 fmt::format("dualpipe needs an even pp, not {}; micro-batches enter at both ends",
                             strategy.pp)};
  }
  return {};
}

// Calls visit(member of Strategy, member of StrategyRequest) for each key, so that none is
// forgotten.
template <typename Visit>
void for_each_key(const Visit& visit) {
  using S = Strategy;
  using R = StrategyRequest;
  visit(&S::tp, &R::tp);
  visit(&S::pp, &R::pp);
  visit(&S::dp, &R::dp);
  visit(&S::cp, &R::cp);
  visit(&S::ep, &R::ep);
  visit(&S::etp, &R::etp);
  visit(&S::micro_batch, &R::micro_batch);
  visit(&S::virtual_stages, &R::virtual_stages);
  visit(&S::zero, &R::zero);
  visit(&S::shard_ranks, &R::shard_ranks);
  visit(&S::recompute, &R::recompute);
  visit(&S::schedule, &R::schedule);
  visit(&S::context, &R::context);
  visit(&S::offload, &R::offload);
  visit(&S::sequence_parallel, &R::sequence_parallel);
  visit(&S::overlap, &R::overlap);
  visit(&S::compression, &R::compression);
  visit(&S::stage_layers, &R::stage_layers);
}

// Part `i` of so many, as even as possible, the remainder to those in the middle.
LayerRange even_layers(const ModelShape& model, int parts, int i) {
  const int base = model.layers / parts;
  const int extra = model.layers % parts;
  const int larger = i - first_larger_part(model, parts);  // of them, before `i`
  return {.first = i * base + std::clamp(larger, 0, extra),
          .count = base + (larger >= 0 && larger < extra ? 1 : 0)};
}

int stage_of_part(const Strategy& strategy, int part) {
  const int place = part % strategy.pp;
  const bool is_back = strategy.schedule == PipelineSchedule::kZbV && part >= strategy.pp;
  return is_back ? strategy.pp - 1 - place : place;
}

// The layers of part `i` in the model's order, where stage_layers has a number a stage or a part.
int given_layers(const Strategy& strategy, int i) {
  const std::vector<int>& given = strategy.stage_layers;
  if (lists_parts(strategy)) return given[as_index(i)];
  return given[as_index(stage_of_part(strategy, i))] / parts_per_stage(strategy);
}

// The first stage of stage_layers without a layer.
std::optional<int> empty_stage(const Strategy& strategy) {
  std::vector<int> layers(as_index(strategy.pp));
  const int parts = static_cast<int>(strategy.stage_layers.size());
  for (int part = 0; part < parts; ++part)
    layers[as_index(stage_of_part(strategy, part))] += strategy.stage_layers[as_index(part)];
  const auto empty = std::find_if(layers.begin(), layers.end(), [](int n) { return n < 1; });
  if (empty == layers.end()) return std::nullopt;
  return static_cast<int>(empty - layers.begin());
}

// "13x7,5": 13 stages of 7 layers and one of 5.
std::string runs_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0, end = 0; i < numbers.size(); i = end) {
    while (end < numbers.size() && numbers[end] == numbers[i])
      ++end;
    if (i > 0) text += ',';
    text += end - i > 1 ? fmt::format("{}x{}", end - i, numbers[i]) : std::to_string(numbers[i]);
  }
  return text;
}

std::vector<Rank> group_along(int RankCoordinates::*axis, int size, const Strategy& strategy,
                              Rank rank) {
  RankCoordinates at = coordinates_of(strategy, rank);
  std::vector<Rank> group;
  for (int i = 0; i < size; ++i) {
    at.*axis = i;
    group.push_back(rank_at(strategy, at));
  }
  return group;
}

}  // namespace

Strategy requested(const StrategyRequest& request) {
  Strategy strategy;
  for_each_key([&](auto value, auto asked) {
    strategy.*value = (request.*asked).value_or(strategy.*value);
  });
  if (request.stage_layers && !request.pp)
    strategy.pp = static_cast<int>(request.stage_layers->size());
  return strategy;
}

StrategyRequest merged(const StrategyRequest& first, const StrategyRequest& second) {
  StrategyRequest request = first;
  for_each_key([&](auto /*value*/, auto asked) {
    if (!(request.*asked)) request.*asked = second.*asked;
  });
  request.constraints.insert(request.constraints.end(), second.constraints.begin(),
                             second.constraints.end());
  return request;
}

Status check_request(const StrategyRequest& request) {
  REGATTA_TRY_DO(check_constraints(request));
  const auto contradicts = [](std::string text) -> Status {
    return Error{Code::kInvalidInput, "strategy: " + std::move(text)};
  };
  if (request.shard_ranks.value_or(0) > 0 && request.zero == 0) {
    return contradicts(
        fmt::format("shard_ranks {}, but with zero 0 replicas share nothing; set "
                    "zero 1 to 3, or leave shard_ranks out",
                    *request.shard_ranks));
  }
  if (request.sequence_parallel == true && request.tp == 1) {
    return contradicts(
        "sequence_parallel, but with tp 1 there is no rank to share tokens with; "
        "set tp above 1, or leave sequence_parallel out");
  }
  const PipelineSchedule schedule = request.schedule.value_or(PipelineSchedule::k1F1B);
  if (schedule != PipelineSchedule::k1F1B && request.pp == 1) {
    return contradicts(
        fmt::format("schedule {}, but pp 1 is no pipeline; set pp above 1, or leave "
                    "schedule and virtual_stages out",
                    to_string(schedule)));
  }
  return {};
}

RankCoordinates coordinates_of(const Strategy& strategy, Rank rank) {
  REGATTA_CHECK(rank.value >= 0 && rank.value < strategy.world_size());
  return {.tp = rank.value % strategy.tp,
          .dp = rank.value / strategy.tp % strategy.dp,
          .pp = rank.value / (strategy.tp * strategy.dp)};
}

Rank rank_at(const Strategy& strategy, RankCoordinates at) {
  return {(at.pp * strategy.dp + at.dp) * strategy.tp + at.tp};
}

bool is_folded(const Strategy& strategy) {
  return strategy.expert_tp() != strategy.tp;
}

ExpertFold expert_fold(const Strategy& strategy) {
  const int etp = strategy.expert_tp();
  return {.etp = etp, .ep = strategy.ep, .edp = strategy.stage_ranks() / (etp * strategy.ep)};
}

std::vector<Rank> tp_group(const Strategy& strategy, Rank rank) {
  return group_along(&RankCoordinates::tp, strategy.tp, strategy, rank);
}

std::vector<Rank> dp_group(const Strategy& strategy, Rank rank) {
  return group_along(&RankCoordinates::dp, strategy.dp, strategy, rank);
}

std::vector<Rank> pp_group(const Strategy& strategy, Rank rank) {
  return group_along(&RankCoordinates::pp, strategy.pp, strategy, rank);
}

// Those nearest to the middle, of two the first.
int first_larger_part(const ModelShape& model, int parts) {
  const int extra = model.layers % parts;
  return parts % 2 == 0 ? parts / 2 - (extra + 1) / 2 : parts / 2 - extra / 2;
}

int part_of_layer(const ModelShape& model, int parts, int layer) {
  REGATTA_CHECK(layer >= 0 && layer < model.layers && parts <= model.layers);
  const int base = model.layers / parts;
  const int larger = first_larger_part(model, parts);
  const int extra = model.layers % parts;
  const int past = layer - larger * base;  // layers of the parts before
  if (past < 0) return layer / base;
  if (past < extra * (base + 1)) return larger + past / (base + 1);
  return larger + extra + (past - extra * (base + 1)) / base;
}

LayerRange stage_layers(const ModelShape& model, const Strategy& strategy, int pp) {
  REGATTA_CHECK(pp >= 0 && pp < strategy.pp);
  const std::vector<int>& given = strategy.stage_layers;
  if (given.empty()) return even_layers(model, strategy.pp, pp);
  return {.first = std::accumulate(given.begin(), given.begin() + pp, 0),
          .count = given[as_index(pp)]};
}

int parts_per_stage(const Strategy& strategy) {
  return strategy.schedule == PipelineSchedule::kZbV ? 2 : strategy.virtual_stages;
}

LayerRange part_layers(const ModelShape& model, const Strategy& strategy, int part) {
  const int parts = strategy.pp * parts_per_stage(strategy);
  REGATTA_CHECK(part >= 0 && part < parts);
  if (strategy.stage_layers.empty()) return even_layers(model, parts, part);
  LayerRange range;
  for (int i = 0; i < part; ++i)
    range.first += given_layers(strategy, i);
  range.count = given_layers(strategy, part);
  return range;
}

bool lists_parts(const Strategy& strategy) {
  return strategy.stage_layers.size() > as_index(strategy.pp);
}

int layers_on_stage(const ModelShape& model, const Strategy& strategy, int pp) {
  int layers = 0;
  for (int part = 0; part < strategy.pp * parts_per_stage(strategy); ++part)
    if (stage_of_part(strategy, part) == pp) layers += part_layers(model, strategy, part).count;
  return layers;
}

Status check_stage_layers(const ModelShape& model, const Strategy& strategy) {
  const std::vector<int>& given = strategy.stage_layers;
  if (given.empty()) return {};
  const auto wrong = [](std::string text) -> Status {
    return Error{Code::kInvalidInput, "stage_layers: " + std::move(text)};
  };
  const int parts = parts_per_stage(strategy);
  const bool is_by_part = parts > 1 && given.size() == as_index(strategy.pp) * as_index(parts);
  if (given.size() != as_index(strategy.pp) && !is_by_part) {
    const bool could_list =
        parts > 1 || (lists_parts(strategy) && given.size() % as_index(strategy.pp) == 0);
    return wrong(fmt::format(
        "{} stages are given, pp is {}; give one number a stage, {}or leave pp out", given.size(),
        strategy.pp, could_list ? "or with virtual_stages one a part, " : ""));
  }
  if (const auto negative = std::find_if(given.begin(), given.end(), [](int n) { return n < 0; });
      negative != given.end())
    return wrong(fmt::format("{} layers; give numbers of layers", *negative));
  if (const std::optional<int> stage = empty_stage(strategy))
    return wrong(fmt::format("stage {} has 0 layers; a stage needs a layer", *stage));
  for (std::size_t stage = 0; stage < given.size() && !is_by_part; ++stage) {
    if (given[stage] % parts == 0) continue;
    return wrong(
        fmt::format("the {} layers of stage {} do not divide into its {} parts; choose "
                    "multiples of {}, or give a number for each part",
                    given[stage], stage, parts, parts));
  }
  const long long sum = std::accumulate(given.begin(), given.end(), 0LL);
  if (sum != model.layers) {
    return wrong(
        fmt::format("they sum to {}, the model has {} layers; give every layer to one "
                    "stage",
                    sum, model.layers));
  }
  if (strategy.schedule == PipelineSchedule::kDualPipe &&
      !std::equal(given.begin(), given.end(), given.rbegin())) {
    return wrong(
        "dualpipe has part i and part pp - 1 - i on stage i; write the same numbers from "
        "both ends");
  }
  return {};
}

Result<int> micro_batches(const ModelShape& model, const Strategy& strategy, int global_batch) {
  if (std::min({strategy.tp, strategy.pp, strategy.dp, strategy.cp, strategy.ep,
                strategy.micro_batch, strategy.virtual_stages}) < 1 ||
      strategy.etp < 0) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}: every degree must be at least 1", to_string(strategy))};
  }
  REGATTA_TRY_DO(check_schedule(model, strategy));
  if (model.heads % strategy.tp != 0)
    return does_not_divide("tp", strategy.tp, "heads", model.heads);
  if (model.ffn_hidden % strategy.tp != 0)
    return does_not_divide("tp", strategy.tp, "ffn_hidden", model.ffn_hidden);
  if (model.state_space.heads % strategy.tp != 0)
    return does_not_divide("tp", strategy.tp, "mamba_num_heads", model.state_space.heads);
  REGATTA_TRY_DO(check_sharing(model, strategy));
  if (strategy.pp > model.layers) {
    return Error{Code::kInvalidInput, fmt::format("pp {} exceeds layers {}; a stage needs a layer",
                                                  strategy.pp, model.layers)};
  }
  const long long samples = static_cast<long long>(strategy.dp) * strategy.micro_batch;
  if (global_batch < 1 || global_batch % samples != 0) {
    return Error{Code::kInvalidInput,
                 fmt::format("dp {} x micro_batch {} does not divide global_batch {}; choose a "
                             "product that divides it",
                             strategy.dp, strategy.micro_batch, global_batch)};
  }
  REGATTA_TRY_DO(check_stage_layers(model, strategy));
  const int count = static_cast<int>(global_batch / samples);
  if (strategy.schedule == PipelineSchedule::kDualPipe &&
      (count % 2 != 0 || count < 2 * strategy.pp)) {
    return Error{Code::kInvalidInput,
                 fmt::format("dualpipe with pp {} and {} micro-batches: they must be even and at "
                             "least twice pp; choose a smaller micro_batch or another schedule",
                             strategy.pp, count)};
  }
  return count;
}

std::string to_string(const Strategy& strategy) {
  std::string text = fmt::format("tp{} pp{} dp{} mb{} recompute={}{}", strategy.tp, strategy.pp,
                                 strategy.dp, strategy.micro_batch, to_string(strategy.recompute),
                                 strategy.overlap ? "" : " overlap=off");
  if (strategy.cp > 1) {
    text += fmt::format(" cp{}{}", strategy.cp,
                        strategy.context == ContextParallelism::kRing ? "" : "(all-to-all)");
  }
  if (strategy.ep > 1) text += fmt::format(" ep{}", strategy.ep);
  if (is_folded(strategy)) text += fmt::format(" etp{}", strategy.etp);
  if (strategy.schedule == PipelineSchedule::kInterleaved)
    text += fmt::format(" vp{}", strategy.virtual_stages);
  else if (strategy.schedule != PipelineSchedule::k1F1B)
    text += " " + to_string(strategy.schedule);
  if (!strategy.stage_layers.empty()) text += " layers=" + runs_text(strategy.stage_layers);
  if (strategy.sequence_parallel) text += " sp";
  if (strategy.zero > 0) text += fmt::format(" zero{}", strategy.zero);
  if (strategy.shard_ranks > 0) text += fmt::format("/{}", strategy.shard_ranks);
  if (strategy.offload != Offload::kNone) text += " offload=" + to_string(strategy.offload);
  if (strategy.compression != GradientCompression::kNone)
    text += " compression=" + to_string(strategy.compression);
  return text;
}

std::string to_string(Recompute recompute) {
  return enum_name(kRecomputeNames, recompute);
}
std::optional<Recompute> recompute_named(std::string_view name) {
  return parse_enum<Recompute>(kRecomputeNames, name);
}

std::string to_string(PipelineSchedule schedule) {
  return enum_name(kScheduleNames, schedule);
}
std::optional<PipelineSchedule> schedule_named(std::string_view name) {
  return parse_enum<PipelineSchedule>(kScheduleNames, name);
}

std::string to_string(ContextParallelism context) {
  return enum_name(kContextNames, context);
}

std::string to_string(Offload offload) {
  return enum_name(kOffloadNames, offload);
}

std::string to_string(GradientCompression compression) {
  return enum_name(kCompressionNames, compression);
}

}  // namespace regatta::workload
