#include "regatta/planning/plan/internal/search/heterogeneous_split.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_pipeline.h"
#include "regatta/planning/plan/internal/search/layer_balance.h"

namespace regatta::plan {
namespace {

const workload::BlockCounts kDense = workload::dense_and_expert_blocks(1, 0);
const workload::BlockCounts kExpert = workload::dense_and_expert_blocks(0, 1);

class Splitter {
 public:
  explicit Splitter(const HeterogeneousJob& job) : job_(job) {
    const workload::BlockCounts all = all_blocks(job.model);
    dense_ = static_cast<int>(all[0]);
    expert_ = static_cast<int>(all[1]);
    split_.micro_batches = even_shares();
  }

  std::optional<HeterogeneousSplit> run(bool is_thorough) {
    const bool has_layers = !job_.strategy.stage_layers.empty();
    const bool is_ordered = are_kinds_in_order(job_.model) && job_.model.mtp_layers == 0;
    constexpr int kRounds = 3;
    for (int round = 0; round < kRounds; ++round) {
      if (has_layers) {
        split_.layers = job_.strategy.stage_layers;
      } else if (is_ordered) {
        const auto balance = balance_layers(input(), is_thorough ? 20000 : 0);
        if (!balance) return std::nullopt;
        split_.layers = balance->layers;
      } else {
        split_.layers = proportional_layers();
      }
      if (job_.even_replicas) break;
      std::vector<int> shares = micro_batch_shares(classes(), job_.micro_batches);
      if (shares == split_.micro_batches) break;
      split_.micro_batches = std::move(shares);
    }
    if (!fits_devices(job_, split_)) return std::nullopt;
    if (!is_thorough || has_layers) return split_;
    for (moves_ = move_budget(job_.strategy.pp); move_one();) {
    }
    return split_;
  }

 private:
  std::vector<int> even_shares() const {
    const int count = job_.micro_batches;
    const int replicas = job_.strategy.dp;
    std::vector<int> shares(static_cast<std::size_t>(replicas), count / replicas);
    std::fill_n(shares.begin(), count % replicas, count / replicas + 1);
    return shares;
  }

  int most_micro_batches() const {
    return *std::max_element(split_.micro_batches.begin(), split_.micro_batches.end());
  }

  // Each stage at the pace of the replica that keeps it busy longest.
  BalanceInput input() const {
    const int most = most_micro_batches();
    BalanceInput input{.dense = dense_, .expert = expert_, .micro_batches = most};
    for (int stage = 0; stage < job_.strategy.pp; ++stage) {
      BalanceStage one = memory_of(stage, most);
      double longest = 0;
      for (int replica = 0; replica < job_.strategy.dp; ++replica) {
        // Those like it have as many micro-batches or one fewer.
        if (at(job_.like, replica) != replica) continue;
        const double share = static_cast<double>(at(split_.micro_batches, replica)) / most;
        const MicroBatchTime fixed = micro_batch_time(job_, stage, replica, {}) * share;
        const MicroBatchTime dense = micro_batch_time(job_, stage, replica, kDense) * share;
        const MicroBatchTime expert = micro_batch_time(job_, stage, replica, kExpert) * share;
        const double mean = job_.model.layers / static_cast<double>(job_.strategy.pp);
        const double time =
            (fixed.total() + (std::max(dense.total(), expert.total()) - fixed.total()) * mean)
                .value;
        if (replica > 0 && time <= longest) continue;
        longest = time;
        one.fixed = fixed;
        one.dense = dense - fixed;
        one.expert = expert - fixed;
      }
      input.stages.push_back(one);
    }
    return input;
  }

  // As many layers for a stage as its pace allows, each taken for the mean of all: for models whose
  // layers differ, which no balance of two kinds of blocks knows.
  std::vector<int> proportional_layers() const {
    workload::BlockCounts mean = all_blocks(job_.model);
    mean *= 1.0 / job_.model.layers;
    const int stages = job_.strategy.pp;
    const int layers = job_.model.layers;
    std::vector<double> pace;
    for (int stage = 0; stage < stages; ++stage) {
      double slowest = 0;
      for (int replica = 0; replica < job_.strategy.dp; ++replica)
        if (at(job_.like, replica) == replica)
          slowest = std::max(slowest, micro_batch_time(job_, stage, replica, mean).total().value);
      pace.push_back(1 / slowest);
    }
    const double all = std::accumulate(pace.begin(), pace.end(), 0.0);
    std::vector<int> counts;
    double until = 0;
    int given = 0;
    for (int stage = 0; stage < stages; ++stage) {
      until += at(pace, stage) / all * layers;
      const int most = layers - given - (stages - 1 - stage);
      const int end = stage + 1 == stages ? layers : static_cast<int>(std::lround(until));
      counts.push_back(std::clamp(end - given, 1, most));
      given += counts.back();
    }
    return counts;
  }

  BalanceStage memory_of(int stage, int micro_batches) const {
    const auto total = [&](const workload::BlockCounts& blocks) {
      return stage_memory(job_, stage, blocks, micro_batches).total();
    };
    BalanceStage one;
    one.fixed_memory = total({});
    one.dense_memory = total(kDense) - one.fixed_memory;
    one.expert_memory = total(kExpert) - one.fixed_memory;
    one.capacity = kUsableMemory * static_cast<double>(job_.stage_group(stage).capacity.value);
    return one;
  }

  std::vector<ReplicaClass> classes() const {
    const std::vector<workload::BlockCounts> spans = stage_block_counts(job_.model, split_.layers);
    std::map<int, ReplicaClass> classes;
    for (int replica = 0; replica < job_.strategy.dp; ++replica) {
      const int like = at(job_.like, replica);
      if (like == replica) classes[like].slots = micro_batch_times(job_, spans, replica);
      classes[like].replicas.push_back(replica);
    }
    std::vector<ReplicaClass> all;
    all.reserve(classes.size());
    for (auto& [like, pace] : classes)
      all.push_back(std::move(pace));
    return all;
  }

  bool move_one() {
    const Seconds before = estimate_heterogeneous(job_, split_).step.total();
    for (std::size_t from = 0; from < split_.layers.size(); ++from) {
      for (std::size_t to = 0; to < split_.layers.size(); ++to) {
        if (from == to || split_.layers[from] == 1) continue;
        if (--moves_ < 0) return false;
        HeterogeneousSplit moved = split_;
        --moved.layers[from];
        ++moved.layers[to];
        if (estimate_heterogeneous(job_, moved).step.total() >= before * (1 - 1e-9) ||
            !fits_devices(job_, moved))
          continue;
        split_ = moved;
        return true;
      }
    }
    return false;
  }

  const HeterogeneousJob& job_;
  int dense_ = 0;
  int expert_ = 0;
  HeterogeneousSplit split_;
  int moves_ = 0;
};

}  // namespace

std::vector<int> micro_batch_shares(const std::vector<ReplicaClass>& classes, int count) {
  // For each pace: micro-batches of every replica, and the number of replicas with one more.
  struct Share {
    int each = 1;
    int extra = 0;
  };
  std::vector<Share> shares(classes.size());
  // One micro-batch after the other to the pace that would end soonest with it: no share can
  // shrink without another ending later, because time grows with micro-batches.
  std::multimap<double, std::size_t> next;
  int left = count;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    left -= static_cast<int>(classes[i].replicas.size());
    next.emplace(pipeline_time(classes[i].slots, 2).value, i);
  }
  while (left > 0) {
    const std::size_t i = next.begin()->second;
    const auto all = static_cast<int>(classes[i].replicas.size());
    const bool is_alone = classes.size() == 1;
    shares[i].each += is_alone ? left / all : left / all > 0 ? 1 : 0;
    shares[i].extra = is_alone ? left % all : std::min(left, all) % all;
    left -= is_alone ? left : std::min(left, all);
    next.erase(next.begin());
    next.emplace(pipeline_time(classes[i].slots, shares[i].each + 1).value, i);
  }
  std::map<int, int> by_replica;
  for (std::size_t i = 0; i < classes.size(); ++i)
    for (const int replica : classes[i].replicas)
      by_replica[replica] = shares[i].each + (shares[i].extra-- > 0 ? 1 : 0);
  std::vector<int> result;
  result.reserve(by_replica.size());
  for (const auto& [replica, share] : by_replica)
    result.push_back(share);
  return result;
}

bool fits_devices(const HeterogeneousJob& job, const HeterogeneousSplit& split) {
  const auto spans = stage_block_counts(job.model, split.layers);
  const int most = *std::max_element(split.micro_batches.begin(), split.micro_batches.end());
  for (int stage = 0; stage < job.strategy.pp; ++stage) {
    const auto capacity = static_cast<double>(job.stage_group(stage).capacity.value);
    const double needed = stage_memory(job, stage, at(spans, stage), most).total();
    if (needed > kUsableMemory * capacity) return false;
  }
  return true;
}

std::optional<HeterogeneousSplit> best_split(const HeterogeneousJob& job, bool is_thorough) {
  return Splitter(job).run(is_thorough);
}

}  // namespace regatta::plan
