#include "regatta/workload/strategy.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "regatta/core/check.h"

namespace regatta::workload {
namespace {

Error does_not_divide(const char* divisor, int a, const char* name, int b) {
  return {Code::kInvalidInput, fmt::format("{} {} does not divide {} {}; choose a divisor of {}",
                                           divisor, a, name, b, b)};
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

RankCoordinates coordinates_of(const Strategy& strategy, Rank rank) {
  REGATTA_CHECK(rank.value >= 0 && rank.value < strategy.world_size());
  return {.tp = rank.value % strategy.tp,
          .dp = rank.value / strategy.tp % strategy.dp,
          .pp = rank.value / (strategy.tp * strategy.dp)};
}

Rank rank_at(const Strategy& strategy, RankCoordinates at) {
  return {(at.pp * strategy.dp + at.dp) * strategy.tp + at.tp};
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

LayerRange stage_layers(const ModelShape& model, int pp_size, int pp) {
  REGATTA_CHECK(pp_size > 0 && pp >= 0 && pp < pp_size);
  const int base = model.layers / pp_size;
  const int extra = model.layers % pp_size;
  std::vector<int> order(static_cast<std::size_t>(pp_size));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [pp_size](int a, int b) {
    return std::abs(2 * a - pp_size + 1) < std::abs(2 * b - pp_size + 1);
  });
  std::vector<int> count(static_cast<std::size_t>(pp_size), base);
  for (int i = 0; i < extra; ++i)
    ++count[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
  return {.first = std::accumulate(count.begin(), count.begin() + pp, 0),
          .count = count[static_cast<std::size_t>(pp)]};
}

Result<int> micro_batches(const ModelShape& model, const Strategy& strategy, int global_batch) {
  if (strategy.tp < 1 || strategy.pp < 1 || strategy.dp < 1 || strategy.micro_batch < 1) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}: every degree must be at least 1", to_string(strategy))};
  }
  if (model.heads % strategy.tp != 0)
    return does_not_divide("tp", strategy.tp, "heads", model.heads);
  if (model.ffn_hidden % strategy.tp != 0)
    return does_not_divide("tp", strategy.tp, "ffn_hidden", model.ffn_hidden);
  if (model.vocab % strategy.tp != 0)
    return does_not_divide("tp", strategy.tp, "vocab", model.vocab);
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
  return static_cast<int>(global_batch / samples);
}

std::string to_string(const Strategy& strategy) {
  std::string text = fmt::format("tp{} pp{} dp{} mb{} recompute={}{}", strategy.tp, strategy.pp,
                                 strategy.dp, strategy.micro_batch, to_string(strategy.recompute),
                                 strategy.overlap ? "" : " overlap=off");
  if (strategy.virtual_stages > 1) text += fmt::format(" vp{}", strategy.virtual_stages);
  if (strategy.sequence_parallel) text += " sp";
  if (strategy.zero > 0) text += fmt::format(" zero{}", strategy.zero);
  if (strategy.compression != Compression::kNone)
    text += " compression=" + to_string(strategy.compression);
  return text;
}

std::string to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::kNone:
      return "none";
    case Recompute::kSelective:
      return "selective";
    case Recompute::kFull:
      return "full";
  }
  return "";
}

std::string to_string(Compression compression) {
  constexpr std::array kNames = {"none", "bf16", "fp16", "fp8", "int8", "topk", "powersgd", "auto"};
  static_assert(kNames.size() == kCompressions.size());
  return kNames[static_cast<std::size_t>(compression)];
}

std::optional<Compression> compression_named(std::string_view name) {
  for (const Compression compression : kCompressions)
    if (to_string(compression) == name) return compression;
  return std::nullopt;
}

}  // namespace regatta::workload
