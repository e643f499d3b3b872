#include "regatta/platform/sched/internal/water_filling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr double kFull = 1e-11;       // shares this near to a cap are at it
constexpr double kSameLevel = 1e-10;  // and this near to the dominant one are dominant too
constexpr int kNoSlot = std::numeric_limits<int>::max();

double scaled_share(const ResourceShares& amounts, const ResourceShares& scale) {
  double share = 0;
  for (std::size_t r = 0; r < amounts.size(); ++r)
    share = std::max(share, amounts[r] * scale[r]);
  return share;
}

// How fast the share rises: the fastest among the resources that are dominant now.
double share_rate(const ResourceShares& amounts, const ResourceShares& rate,
                  const ResourceShares& scale) {
  const double share = scaled_share(amounts, scale);
  double fastest = 0;
  for (std::size_t r = 0; r < amounts.size(); ++r)
    if (amounts[r] * scale[r] >= share - kSameLevel)
      fastest = std::max(fastest, rate[r] * scale[r]);
  return fastest;
}

}  // namespace

WaterFilling::WaterFilling(const QuotaTree& tree, std::vector<ResourceShares> demand,
                           std::vector<ResourceShares> limit)
    : tree_(&tree),
      demand_(std::move(demand)),
      limit_(std::move(limit)),
      states_(as_index(tree.size()) + 1),
      slot_(as_index(tree.size()) + 1) {
  for (const ResourceShares& wanted : demand_)
    dominant_.push_back(*std::max_element(wanted.begin(), wanted.end()));
  int flows = 0;
  for (int queue = 0; queue <= tree.size(); ++queue) {
    const auto children = static_cast<int>(tree.children(queue - 1).size());
    flows_begin_.push_back(flows);
    flows += 2 * children;
    for (int slot = 0; slot < children; ++slot)
      at(slot_, child(queue, slot)) = slot;
  }
  flows_.resize(as_index(flows));
}

int WaterFilling::child(int queue, int slot) const {
  return at(tree_->children(queue - 1), slot) + 1;
}

WaterFilling::ChildFlows& WaterFilling::flows(int queue, int node) {
  return at(flows_, at(flows_begin_, queue) + node);
}

int WaterFilling::subtree_end(int queue) const {
  return queue == 0 ? tree_->size() + 1 : tree_->subtree_end(queue - 1) + 1;
}

void WaterFilling::start_round() {
  for (int queue = 0; queue <= tree_->size(); ++queue) {
    QueueState& started = state(queue);
    started.excess = started.flow = started.pour = {};
    started.scale.fill(1);
    started.is_capped = {};
    started.clock = started.clock_base = started.level_base = started.level = 0;
    started.factor = started.weight = 1;
    started.alone = -1;
    started.is_open = started.is_level = false;
    started.is_passing = queue == 0;
    if (queue == 0)
      started.cap.fill(1);
    else
      started.cap = at(limit_, queue - 1);
  }
}

void WaterFilling::fill_up_to(const std::vector<ResourceShares>& bound, int height) {
  std::vector<int> roots;
  for (int root = 1; root <= tree_->size(); ++root) {
    const ResourceShares& bounds = at(bound, root - 1);
    if (tree_->height(root - 1) == height && *std::max_element(bounds.begin(), bounds.end()) > 0)
      roots.push_back(root);
  }
  if (roots.empty()) return;
  start_round();
  for (const int root : roots) {
    const ResourceShares& bounds = at(bound, root - 1);
    for (int above = tree_->parent(root - 1); above >= 0; above = tree_->parent(above))
      state(above + 1).is_passing = true;
    QueueState& filled = state(root);
    for (std::size_t r = 0; r < bounds.size(); ++r) {
      filled.scale[r] = bounds[r] > 0 ? 1 / bounds[r] : 0;
      if (bounds[r] > 0) filled.cap[r] = std::min(filled.cap[r], bounds[r]);
    }
    for (int queue = root; queue < subtree_end(root); ++queue) {
      if (queue > root) state(queue).weight = tree_->queue(queue - 1).weight;
      if (!is_leaf(queue)) continue;
      for (std::size_t r = 0; r < bounds.size(); ++r)
        state(queue).is_open |= bounds[r] > 0 && at(demand_, queue - 1)[r] > 0;
    }
  }
  run();
}

void WaterFilling::fill() {
  start_round();
  for (int queue = 1; queue <= tree_->size(); ++queue) {
    state(queue).weight = tree_->queue(queue - 1).weight;
    state(queue).is_open = is_leaf(queue) && at(dominant_, queue - 1) > 0;
  }
  run();
}

void WaterFilling::run() {
  close_caps_at_start();
  for (int queue = tree_->size(); queue >= 0; --queue) {
    if (is_leaf(queue))
      start_leaf(queue);
    else
      update(queue);
  }
  QueueState& top = state(0);
  while (top.is_open) {
    top.clock_base = top.next;
    catch_up(0);
    settle(0);
  }
}

void WaterFilling::close_caps_at_start() {
  for (int queue = 0; queue <= tree_->size(); ++queue) {
    QueueState& full = state(queue);
    for (std::size_t r = 0; r < full.cap.size(); ++r) {
      if (full.cap[r] - full.poured[r] > kFull) continue;
      full.is_capped[r] = true;
      for (int leaf = queue; leaf < subtree_end(queue); ++leaf)
        if (leaf > 0 && at(demand_, leaf - 1)[r] > 0) state(leaf).is_open = false;
    }
  }
}

// A leaf's share rises at one rate until it is full or at a cap of its own.
void WaterFilling::start_leaf(int leaf) {
  QueueState& filled = state(leaf);
  const double dominant = at(dominant_, leaf - 1);
  filled.is_open &= (1 - filled.part) * dominant > kFull;
  if (filled.is_open) {
    const ResourceShares& demand = at(demand_, leaf - 1);
    filled.factor = dominant / scaled_share(demand, filled.scale);
    filled.next = (1 - filled.part) * dominant / filled.factor;
    for (std::size_t r = 0; r < demand.size(); ++r) {
      filled.flow[r] = filled.factor * demand[r] / dominant;
      if (demand[r] > 0)
        filled.next = std::min(filled.next, (filled.cap[r] - filled.poured[r]) / filled.flow[r]);
    }
  }
  report(leaf);
}

// Carries out the events that are due in a queue that is up to date: the one that was computed,
// whatever rounding has made of its time, and those of the same time.
void WaterFilling::settle(int queue) {
  QueueState& due = state(queue);
  if (due.event == Event::kChild)
    settle_child(queue, due.alone >= 0 ? due.alone : flows(queue, 1).next_slot);
  if (due.event == Event::kDominance) {
    double& excess = at(due.excess, due.event_resource);
    excess =
        std::max(excess, scaled_share(due.excess, due.scale) / at(due.scale, due.event_resource));
  }
  const bool is_alone = due.alone >= 0;
  while (!is_alone && flows(queue, 1).next <= due.level)
    settle_child(queue, flows(queue, 1).next_slot);
  for (std::size_t r = 0; r < due.cap.size(); ++r) {
    const bool is_due = due.event == Event::kCap && due.event_resource == static_cast<int>(r);
    if (due.is_capped[r] || (!is_due && due.cap[r] - due.poured[r] > kFull)) continue;
    due.is_capped[r] = true;
    close_demanding(queue, r);
  }
  update(queue);
}

void WaterFilling::settle_child(int queue, int slot) {
  const int due = child(queue, slot);
  catch_up(due);
  if (!is_leaf(due)) {
    settle(due);
    return;
  }
  close_leaf(due);
}

// Brings a queue to its parent's time, which is up to date.
void WaterFilling::catch_up(int queue) {
  QueueState& late = state(queue);
  double now = late.clock_base;
  if (queue > 0) {
    const QueueState& parent = state(tree_->parent(queue - 1) + 1);
    now += late.weight * (parent.level - late.level_base);
  }
  const double time = std::max(0.0, now - late.clock);
  late.clock = now;
  if (!late.is_open) return;
  if (is_leaf(queue)) {
    late.part = std::min(1.0, late.part + time * late.factor / at(dominant_, queue - 1));
    for (std::size_t r = 0; r < late.flow.size(); ++r)
      late.poured[r] += time * late.flow[r];
    return;
  }
  const double rise = late.factor * time;
  for (std::size_t r = 0; r < late.pour.size(); ++r) {
    late.poured[r] += rise * late.pour[r];
    late.excess[r] += rise * late.pour[r];
  }
  if (late.alone >= 0)
    state(child(queue, late.alone)).clock_base += rise;
  else
    late.level += rise;
}

void WaterFilling::close_leaf(int leaf) {
  QueueState& closed = state(leaf);
  if ((1 - closed.part) * at(dominant_, leaf - 1) <= kFull) closed.part = 1;
  closed.is_open = false;
  report(leaf);
}

// Closes the leaves below that demand what the queue has up to its cap.
void WaterFilling::close_demanding(int queue, std::size_t resource) {
  for (int below = queue + 1; below < subtree_end(queue); ++below) {
    catch_up(below);
    if (is_leaf(below) && state(below).is_open && at(demand_, below - 1)[resource] > 0)
      close_leaf(below);
  }
  for (int below = subtree_end(queue) - 1; below > queue; --below)
    if (!is_leaf(below)) update(below);
}

// Open children rise together. While one takes something and its share does not rise, it stays the
// least: the first such child takes all. The queue is up to date, and its children have reported.
void WaterFilling::update(int queue) {
  QueueState& fed = state(queue);
  if (fed.alone >= 0) {  // what it told of itself was in a level that stood still
    catch_up(child(queue, fed.alone));
    report(child(queue, fed.alone));
  }
  const ChildFlows& all = flows(queue, 1);
  fed.alone = all.level_slot == kNoSlot ? -1 : all.level_slot;
  fed.pour = fed.alone >= 0 ? state(child(queue, fed.alone)).flow : all.rate;
  fed.is_open = all.next < kEndless || fed.alone >= 0;
  const double rise = share_rate(fed.excess, fed.pour, fed.scale);
  fed.is_level = fed.is_passing ? fed.alone >= 0 : rise <= 0;
  fed.factor = fed.is_passing || fed.is_level ? 1 : 1 / rise;
  for (std::size_t r = 0; r < fed.flow.size(); ++r)
    fed.flow[r] = fed.factor * fed.pour[r];
  if (fed.is_open) find_next_event(queue);
  if (queue > 0) report(queue);
}

// A leaf is full, a cap is reached, or another resource becomes dominant.
void WaterFilling::find_next_event(int queue) {
  QueueState& fed = state(queue);
  fed.event = Event::kChild;
  double time = flows(queue, 1).next - fed.level;
  if (fed.alone >= 0) {
    const QueueState& alone = state(child(queue, fed.alone));
    time = alone.next - alone.clock;
  }
  const double share = scaled_share(fed.excess, fed.scale);
  const double rise = share_rate(fed.excess, fed.pour, fed.scale);
  for (std::size_t r = 0; r < fed.pour.size(); ++r) {
    if (fed.pour[r] <= 0) continue;
    const double to_cap = (fed.cap[r] - fed.poured[r]) / fed.pour[r];
    if (!fed.is_capped[r] && to_cap < time) {
      time = to_cap;
      fed.event = Event::kCap;
      fed.event_resource = static_cast<int>(r);
    }
    const double gap = share - fed.excess[r] * fed.scale[r];
    const double closing = fed.pour[r] * fed.scale[r] - rise;
    if (!fed.is_passing && gap > kSameLevel && closing > 0 && gap / closing < time) {
      time = gap / closing;
      fed.event = Event::kDominance;
      fed.event_resource = static_cast<int>(r);
    }
  }
  fed.next = fed.clock + std::max(time, 0.0) / fed.factor;
}

// To the tree of its parent, which is up to date.
void WaterFilling::report(int queue) {
  QueueState& fed = state(queue);
  const int parent = tree_->parent(queue - 1) + 1;
  const auto children = static_cast<int>(tree_->children(parent - 1).size());
  const int slot = at(slot_, queue);
  ChildFlows flow{.next = kEndless, .next_slot = slot, .level_slot = kNoSlot};
  if (fed.is_open) {
    fed.clock_base = fed.clock;
    fed.level_base = state(parent).level;
    for (std::size_t r = 0; r < flow.rate.size(); ++r)
      flow.rate[r] = fed.weight * fed.flow[r];
    flow.next = fed.level_base + (fed.next - fed.clock) / fed.weight;
    if (fed.is_level) flow.level_slot = slot;
  }
  int node = children + slot;
  flows(parent, node) = flow;
  for (node /= 2; node > 0; node /= 2) {
    const ChildFlows& left = flows(parent, 2 * node);
    const ChildFlows& right = flows(parent, 2 * node + 1);
    ChildFlows both = left.next <= right.next ? left : right;
    for (std::size_t r = 0; r < both.rate.size(); ++r)
      both.rate[r] = left.rate[r] + right.rate[r];
    both.level_slot = std::min(left.level_slot, right.level_slot);
    flows(parent, node) = both;
  }
}

}  // namespace regatta::sched
