// sched/internal/test_scanned_water_filling.h: water_filling.h with a scan of all queues at each
// event, for comparison: O(queues^2).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/water_filling.h"

namespace regatta::sched {

class ScannedWaterFilling {
 public:
  // `demand` and `limit` by queue; only leaves demand. A limit may be infinite.
  ScannedWaterFilling(const QuotaTree& tree, std::vector<ResourceShares> demand,
                      std::vector<ResourceShares> limit);

  // Pours into all queues of `height` at once, each up to `bound`, at the same part of it.
  // `bound` by queue; 0: this resource is not bounded. Only leaves that demand a bounded resource
  // get something.
  void fill_up_to(const std::vector<ResourceShares>& bound, int height);
  // Pours into the whole tree until no leaf can take more.
  void fill();

  // The part of its demand that a leaf got.
  double part(int leaf) const { return states_[static_cast<std::size_t>(leaf)].part; }

 private:
  struct QueueState {
    ResourceShares poured{};  // in all rounds
    ResourceShares excess{};  // in this round
    ResourceShares cap{};     // of `poured`, in this round
    ResourceShares scale{};   // excess times this is the share that is levelled
    ResourceShares rate{};    // of `poured`
    double weight = 1;
    double speed = 0;  // factor of `rate` for each unit of the parent's flow
    double part = 0;   // of a leaf's demand
    double part_rate = 0;
    bool is_open = false;
    bool is_in_round = false;
    std::array<bool, kResources> is_capped{};
    bool is_level = false;  // its share does not rise while its rate flows
  };

  QueueState& state(int queue) { return states_[static_cast<std::size_t>(queue)]; }
  void start_round();
  void run(const std::vector<int>& roots);
  void close_full_leaves();
  void close_at_caps(QueueState& full, int begin, int end);
  bool open_parents();
  void combine(QueueState& parent, std::span<const int> children);
  void set_rates(const std::vector<int>& roots);
  double time_to_event() const;
  void advance(double time);

  const QuotaTree* tree_;
  std::vector<ResourceShares> demand_;
  std::vector<ResourceShares> limit_;
  std::vector<double> dominant_;  // of a leaf's demand
  std::vector<QueueState> states_;
  QueueState top_;
};

inline constexpr double kScannedEndless = std::numeric_limits<double>::infinity();
inline constexpr double kScannedFull = 1e-11;  // shares this near to a cap are at it
inline constexpr double kScannedSameLevel =
    1e-10;  // and this near to the dominant one are dominant too

inline double scanned_share(const ResourceShares& amounts, const ResourceShares& scale) {
  double share = 0;
  for (std::size_t r = 0; r < amounts.size(); ++r)
    share = std::max(share, amounts[r] * scale[r]);
  return share;
}

// How fast the share rises: the fastest among the resources that are dominant now.
inline double scanned_share_rate(const ResourceShares& amounts, const ResourceShares& rate,
                                 const ResourceShares& scale) {
  const double share = scanned_share(amounts, scale);
  double fastest = 0;
  for (std::size_t r = 0; r < amounts.size(); ++r)
    if (amounts[r] * scale[r] >= share - kScannedSameLevel)
      fastest = std::max(fastest, rate[r] * scale[r]);
  return fastest;
}

inline ScannedWaterFilling::ScannedWaterFilling(const QuotaTree& tree,
                                                std::vector<ResourceShares> demand,
                                                std::vector<ResourceShares> limit)
    : tree_(&tree),
      demand_(std::move(demand)),
      limit_(std::move(limit)),
      states_(as_index(tree.size())) {
  for (const ResourceShares& wanted : demand_)
    dominant_.push_back(*std::max_element(wanted.begin(), wanted.end()));
}

inline void ScannedWaterFilling::start_round() {
  for (int queue = 0; queue < tree_->size(); ++queue) {
    QueueState& started = state(queue);
    started.excess = {};
    started.cap = at(limit_, queue);
    started.is_capped = {};
    started.scale.fill(1);
    started.weight = tree_->queue(queue).weight;
    started.is_open = started.is_in_round = false;
  }
  top_.excess = {};
  top_.cap.fill(1);
  top_.is_capped = {};
}

inline void ScannedWaterFilling::fill_up_to(const std::vector<ResourceShares>& bound, int height) {
  start_round();
  std::vector<int> roots;
  for (int root = 0; root < tree_->size(); ++root) {
    if (tree_->height(root) != height) continue;
    const ResourceShares& bounds = at(bound, root);
    if (*std::max_element(bounds.begin(), bounds.end()) <= 0) continue;
    roots.push_back(root);
    QueueState& filled = state(root);
    filled.weight = 1;
    for (std::size_t r = 0; r < bounds.size(); ++r) {
      filled.scale[r] = bounds[r] > 0 ? 1 / bounds[r] : 0;
      if (bounds[r] > 0) filled.cap[r] = std::min(filled.cap[r], bounds[r]);
    }
    for (int queue = root; queue < tree_->subtree_end(root); ++queue) {
      state(queue).is_in_round = true;
      if (!tree_->is_leaf(queue)) continue;
      for (std::size_t r = 0; r < bounds.size(); ++r)
        state(queue).is_open |= bounds[r] > 0 && at(demand_, queue)[r] > 0;
    }
  }
  run(roots);
}

inline void ScannedWaterFilling::fill() {
  start_round();
  for (int queue = 0; queue < tree_->size(); ++queue) {
    state(queue).is_in_round = true;
    state(queue).is_open = tree_->is_leaf(queue) && at(dominant_, queue) > 0;
  }
  const std::span<const int> top = tree_->children(-1);
  run({top.begin(), top.end()});
}

inline void ScannedWaterFilling::run(const std::vector<int>& roots) {
  close_full_leaves();
  while (open_parents()) {
    set_rates(roots);
    advance(time_to_event());
    close_full_leaves();
  }
}

inline void ScannedWaterFilling::close_full_leaves() {
  close_at_caps(top_, 0, tree_->size());
  for (int queue = 0; queue < tree_->size(); ++queue) {
    QueueState& full = state(queue);
    if (tree_->is_leaf(queue) && (1 - full.part) * at(dominant_, queue) <= kScannedFull)
      full.is_open = false;
    close_at_caps(full, queue, tree_->subtree_end(queue));
  }
}

// Closes the leaves among the queues from `begin` to `end` that demand what `full` has up to its
// cap.
inline void ScannedWaterFilling::close_at_caps(QueueState& full, int begin, int end) {
  for (std::size_t r = 0; r < full.cap.size(); ++r) {
    if (full.is_capped[r] || full.cap[r] - full.poured[r] > kScannedFull) continue;
    full.is_capped[r] = true;
    for (int leaf = begin; leaf < end; ++leaf)
      if (at(demand_, leaf)[r] > 0) state(leaf).is_open = false;
  }
}

// A parent is open while a child is. Whether anything is.
inline bool ScannedWaterFilling::open_parents() {
  bool is_any_open = false;
  for (int queue = tree_->size() - 1; queue >= 0; --queue) {
    QueueState& opened = state(queue);
    if (!tree_->is_leaf(queue)) {
      const std::span<const int> children = tree_->children(queue);
      opened.is_open =
          opened.is_in_round && std::any_of(children.begin(), children.end(),
                                            [&](int child) { return state(child).is_open; });
    }
    is_any_open |= opened.is_open;
  }
  return is_any_open;
}

// Open children rise together. While one takes something and its share does not rise, it stays the
// least: the first such child takes all.
inline void ScannedWaterFilling::combine(QueueState& parent, std::span<const int> children) {
  parent.rate = {};
  const auto alone = std::find_if(children.begin(), children.end(), [&](int child) {
    return state(child).is_open && state(child).is_level;
  });
  for (const int child : children) {
    QueueState& poured = state(child);
    const bool takes_part = poured.is_open && (alone == children.end() || child == *alone);
    poured.speed = !takes_part ? 0 : alone == children.end() ? poured.weight : 1;
    for (std::size_t r = 0; r < parent.rate.size(); ++r)
      parent.rate[r] += poured.speed * poured.rate[r];
  }
}

inline void ScannedWaterFilling::set_rates(const std::vector<int>& roots) {
  // Upwards: what flows into a queue while its share rises by 1.
  for (int queue = tree_->size() - 1; queue >= 0; --queue) {
    QueueState& fed = state(queue);
    fed.rate = {};
    if (!fed.is_open) continue;
    if (tree_->is_leaf(queue)) {
      for (std::size_t r = 0; r < fed.rate.size(); ++r)
        fed.rate[r] = at(demand_, queue)[r] / at(dominant_, queue);
    } else {
      combine(fed, tree_->children(queue));
    }
    const double rise = scanned_share_rate(fed.excess, fed.rate, fed.scale);
    fed.is_level = rise <= 0;
    const double factor = fed.is_level ? 1 : 1 / rise;
    for (double& rate : fed.rate)
      rate *= factor;
    fed.part_rate = factor;
  }
  combine(top_, roots);
  // Downwards: what flows while the top takes its rate.
  for (int queue = 0; queue < tree_->size(); ++queue) {
    QueueState& fed = state(queue);
    if (!fed.is_in_round) continue;
    const int parent = tree_->parent(queue);
    const bool is_root = parent < 0 || !state(parent).is_in_round;
    fed.part_rate *= fed.is_open ? fed.speed * (is_root ? 1 : state(parent).part_rate) : 0;
  }
  for (int queue = tree_->size() - 1; queue >= 0; --queue) {
    QueueState& fed = state(queue);
    fed.rate = {};
    if (tree_->is_leaf(queue)) {
      if (!fed.is_open) continue;
      for (std::size_t r = 0; r < fed.rate.size(); ++r)
        fed.rate[r] = fed.part_rate * at(demand_, queue)[r] / at(dominant_, queue);
      continue;
    }
    for (const int child : tree_->children(queue))
      for (std::size_t r = 0; r < fed.rate.size(); ++r)
        fed.rate[r] += state(child).rate[r];
  }
}

// Until a leaf is full, a cap is reached, or another resource becomes dominant.
inline double ScannedWaterFilling::time_to_event() const {
  double time = kScannedEndless;
  const auto reach_caps = [&](const QueueState& filled) {
    for (std::size_t r = 0; r < filled.cap.size(); ++r)
      if (filled.rate[r] > 0)
        time = std::min(time, (filled.cap[r] - filled.poured[r]) / filled.rate[r]);
  };
  reach_caps(top_);
  for (int queue = 0; queue < tree_->size(); ++queue) {
    const QueueState& filled = at(states_, queue);
    reach_caps(filled);
    if (!filled.is_open) continue;
    if (tree_->is_leaf(queue)) {
      if (filled.part_rate > 0)
        time = std::min(time, (1 - filled.part) * at(dominant_, queue) / filled.part_rate);
      continue;
    }
    const double share = scanned_share(filled.excess, filled.scale);
    const double rise = scanned_share_rate(filled.excess, filled.rate, filled.scale);
    for (std::size_t r = 0; r < filled.rate.size(); ++r) {
      const double gap = share - filled.excess[r] * filled.scale[r];
      const double closing = filled.rate[r] * filled.scale[r] - rise;
      if (gap > kScannedSameLevel && closing > 0) time = std::min(time, gap / closing);
    }
  }
  return std::max(time, 0.0);
}

inline void ScannedWaterFilling::advance(double time) {
  const auto pour = [&](QueueState& filled) {
    for (std::size_t r = 0; r < filled.rate.size(); ++r) {
      filled.poured[r] += time * filled.rate[r];
      filled.excess[r] += time * filled.rate[r];
    }
  };
  for (int queue = 0; queue < tree_->size(); ++queue) {
    QueueState& filled = state(queue);
    pour(filled);
    if (tree_->is_leaf(queue) && filled.is_open)
      filled.part = std::min(1.0, filled.part + time * filled.part_rate / at(dominant_, queue));
  }
  pour(top_);
}

}  // namespace regatta::sched
