#include "regatta/planning/plan/internal/search/strategy_space.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>

namespace regatta::plan {
namespace {

using workload::ContextParallelism;
using workload::Offload;
using workload::PipelineSchedule;
using workload::Recompute;
using workload::Strategy;

// The given value alone, or all of `choices`.
template <typename T, typename Choices>
std::vector<T> given_or(const std::optional<T>& given, const Choices& choices) {
  if (given) return std::vector<T>(1, *given);
  return std::vector<T>(std::begin(choices), std::end(choices));
}

constexpr std::array kFalseTrue = {false, true};
constexpr std::array kTrueFalse = {true, false};
constexpr std::array kContexts = {ContextParallelism::kRing, ContextParallelism::kAllToAll};

// The keys that each level of the space decides; constraints on other keys wait for their level.
constexpr std::array<std::string_view, 8> kWorkKeys = {
    "tp", "cp", "context", "ep", "etp", "micro_batch", "sequence_parallel", "recompute"};
constexpr std::array<std::string_view, 2> kStageKeys = {"pp", "dp"};
constexpr std::array<std::string_view, 6> kCompletionKeys = {
    "schedule", "virtual_stages", "zero", "shard_ranks", "overlap", "offload"};

// Removes those after the first `begin` that a constraint on one of `keys` excludes.
void keep_admitted(const workload::StrategyRequest& request, std::span<const std::string_view> keys,
                   std::vector<Strategy>& strategies, std::size_t begin) {
  for (const workload::StrategyConstraint& one : request.constraints) {
    if (std::find(keys.begin(), keys.end(), one.key) == keys.end()) continue;
    const auto first = strategies.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto end = std::remove_if(first, strategies.end(), [&](const Strategy& strategy) {
      return !workload::admits(one, strategy);
    });
    strategies.erase(end, strategies.end());
  }
}

class StrategySpace {
 public:
  explicit StrategySpace(const StrategySpaceInput& input) : input_(input) {}

  std::vector<Strategy> work() {
    for (const int tp : given_or(input_.request.tp, divisors(input_.devices))) {
      if (input_.devices % tp != 0) continue;
      for (const int cp : given_or(input_.request.cp, divisors(input_.devices / tp))) {
        if (input_.devices / tp % cp != 0) continue;
        // No estimate depends on how gradients travel, so none is searched.
        strategy_ = {.tp = tp, .compression = compression(), .cp = cp};
        for (const ContextParallelism context : contexts()) {
          strategy_.context = context;
          with_experts();
        }
      }
    }
    return std::move(found_);
  }

  std::vector<Strategy> stages(const Strategy& work) {
    strategy_ = work;
    const int rest = input_.devices / (work.tp * work.cp);
    for (const int pp : given_or(input_.request.pp, divisors(rest))) {
      if (rest % pp != 0 || pp > input_.model.layers) continue;
      strategy_.pp = pp;
      strategy_.stage_layers = input_.request.stage_layers.value_or(std::vector<int>{});
      strategy_.dp = rest / pp;
      if (input_.request.dp && *input_.request.dp != strategy_.dp) continue;
      if (is_possible_with_stages()) found_.push_back(strategy_);
    }
    return std::move(found_);
  }

  void complete(const Strategy& staged, std::vector<Strategy>& completions) {
    strategy_ = staged;
    with_schedule(completions);
  }

 private:
  workload::GradientCompression compression() const {
    return input_.request.compression.value_or(workload::GradientCompression::kNone);
  }

  std::vector<ContextParallelism> contexts() const {
    if (strategy_.cp == 1) return {ContextParallelism::kRing};
    return given_or(input_.request.context, kContexts);
  }

  void with_experts() {
    const int experts = input_.model.experts.count;
    const auto choices = experts > 0 ? divisors(experts) : std::vector<int>{1};
    for (const int ep : given_or(input_.request.ep, choices)) {
      strategy_.ep = ep;
      for (const int micro_batch :
           given_or(input_.request.micro_batch, divisors(input_.global_batch))) {
        strategy_.micro_batch = micro_batch;
        with_passes();
      }
    }
  }

  void with_passes() {
    const std::vector<bool> shares =
        strategy_.tp == 1 ? std::vector<bool>{input_.request.sequence_parallel.value_or(false)}
                          : given_or(input_.request.sequence_parallel, kFalseTrue);
    for (const bool shared : shares) {
      strategy_.sequence_parallel = shared;
      for (const Recompute recompute : given_or(input_.request.recompute, workload::kRecomputes)) {
        if (needs_experts(recompute) && !has_experts(input_.model)) continue;
        strategy_.recompute = recompute;
        with_fold();
      }
    }
  }

  // Experts are split as the rest of the block, or each stays whole on a rank: between the two more
  // is sent for no less memory.
  void with_fold() {
    const bool has_choice =
        has_experts(input_.model) && strategy_.tp > 1 && strategy_.sequence_parallel;
    for (const int etp :
         given_or(input_.request.etp, has_choice ? std::vector<int>{0, 1} : std::vector<int>{0})) {
      strategy_.etp = etp;
      if (is_possible()) found_.push_back(strategy_);
    }
  }

  // As far as it is known: one replica and one stage stand for all.
  bool is_possible() const {
    Strategy least = strategy_;
    least.dp = strategy_.ep * strategy_.expert_tp();
    return workload::micro_batches(input_.model, least, strategy_.micro_batch * least.dp)
               .has_value() &&
           input_.global_batch % strategy_.micro_batch == 0;
  }

  // A list is one of stages unless pp says that it is longer; whether one of parts fits the
  // schedule is known with the schedule.
  bool is_possible_with_stages() const {
    Strategy staged = strategy_;
    if (lists_parts(staged) && input_.request.pp) staged.stage_layers.clear();
    return workload::micro_batches(input_.model, staged, input_.global_batch).has_value();
  }

  std::vector<int> parts() const {
    if (strategy_.pp == 1) return {};
    int common = std::max(1, input_.model.layers / strategy_.pp);
    if (!strategy_.stage_layers.empty()) {
      common = std::accumulate(strategy_.stage_layers.begin(), strategy_.stage_layers.end(), 0,
                               [](int a, int b) { return std::gcd(a, b); });
    }
    std::vector<int> all = divisors(common);
    all.erase(all.begin());
    return all;
  }

  void with_schedule(std::vector<Strategy>& completions) {
    const std::vector<PipelineSchedule> usual = {PipelineSchedule::k1F1B,
                                                 PipelineSchedule::kInterleaved};
    const std::vector<PipelineSchedule> all(workload::kPipelineSchedules.begin(),
                                            workload::kPipelineSchedules.end());
    for (const PipelineSchedule schedule :
         given_or(input_.request.schedule, input_.every_form ? all : usual)) {
      if (strategy_.pp == 1 && schedule != PipelineSchedule::k1F1B && !input_.request.schedule)
        continue;
      strategy_.schedule = schedule;
      const bool is_interleaved = schedule == PipelineSchedule::kInterleaved;
      const std::vector<int> one = {1};
      for (const int count :
           given_or(input_.request.virtual_stages, is_interleaved ? parts() : one)) {
        if (is_interleaved != (count > 1)) continue;
        strategy_.virtual_stages = count;
        if (workload::micro_batches(input_.model, strategy_, input_.global_batch))
          with_sharing(completions);
      }
    }
  }

  void with_sharing(std::vector<Strategy>& completions) {
    const int replicas = strategy_.dp * strategy_.cp;
    const int inside = input_.server_devices / strategy_.tp;
    const bool is_alone = replicas == 1 && workload::expert_fold(strategy_).edp == 1;
    const std::vector<int> zeros = is_alone ? std::vector<int>{0} : std::vector<int>{0, 1, 2, 3};
    for (const int zero : given_or(input_.request.zero, zeros)) {
      strategy_.zero = zero;
      // Hybrid sharding: inside a server, or four.
      std::vector<int> shards = {0};
      for (const int group : {inside, 4 * inside}) {
        if (input_.every_form && zero > 0 && group > 1 && group < replicas && replicas % group == 0)
          shards.push_back(group);
      }
      for (const int shard : given_or(input_.request.shard_ranks, shards)) {
        strategy_.shard_ranks = shard;
        with_overlap(completions);
      }
    }
  }

  void with_overlap(std::vector<Strategy>& completions) {
    for (const bool overlap : given_or(input_.request.overlap, kTrueFalse)) {
      strategy_.overlap = overlap;
      const std::size_t offloads = input_.every_form ? workload::kOffloads.size() : 1;
      const std::vector<Offload> usual(workload::kOffloads.begin(),
                                       workload::kOffloads.begin() + offloads);
      for (const Offload offload : given_or(input_.request.offload, usual)) {
        strategy_.offload = offload;
        if (!input_.accepts || input_.accepts(strategy_)) completions.push_back(strategy_);
      }
    }
  }

  const StrategySpaceInput& input_;
  Strategy strategy_;
  std::vector<Strategy> found_;
};

}  // namespace

std::vector<int> divisors(int number) {
  std::vector<int> all;
  for (int i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    all.push_back(i);
    if (i != number / i) all.push_back(number / i);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<Strategy> work_strategies(const StrategySpaceInput& input) {
  std::vector<Strategy> all = StrategySpace(input).work();
  keep_admitted(input.request, kWorkKeys, all, 0);
  return all;
}

std::vector<Strategy> stage_counts(const StrategySpaceInput& input, const Strategy& work) {
  std::vector<Strategy> all = StrategySpace(input).stages(work);
  keep_admitted(input.request, kStageKeys, all, 0);
  return all;
}

void add_completions(const StrategySpaceInput& input, const Strategy& staged,
                     std::vector<Strategy>& completions) {
  const std::size_t before = completions.size();
  StrategySpace(input).complete(staged, completions);
  keep_admitted(input.request, kCompletionKeys, completions, before);
}

}  // namespace regatta::plan
