#include "regatta/platform/sched/internal/victim_solver.h"

#include <algorithm>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

constexpr std::size_t kExchangesTried = 16;  // items for one
// Room is checked each time that the freed items have grown by this part of them.
constexpr std::size_t kCheckedPart = 16;

}  // namespace

VictimSolver::VictimSolver(VictimRoom& room, std::vector<const VictimItem*> items)
    : room_(room), items_(std::move(items)) {
  for (const VictimItem* item : items_)
    milli_.push_back(room.added_milli(*item));
  order_items();
}

VictimCost VictimSolver::price_of(int item) const {
  return at(items_, item)->cost / (static_cast<double>(at(milli_, item)) + 1);
}

// Three orders of taking back: the dearest items, the dearest for what they add, and those on the
// nodes that are dearest to empty.
void VictimSolver::order_items() {
  std::vector<VictimCost> cost;
  std::vector<VictimCost> price;
  int nodes = 0;
  for (const VictimItem* item : items_)
    for (const VictimReplica& replica : item->replicas)
      nodes = std::max(nodes, replica.position + 1);
  std::vector<VictimCost> node_cost(as_index(nodes));
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const VictimItem& item = *items_[i];
    cost.push_back(item.cost);
    price.push_back(price_of(static_cast<int>(i)));
    for (const VictimReplica& replica : item.replicas)
      if (item.shed < 0)
        at(node_cost, replica.position) += item.cost / static_cast<double>(item.replicas.size());
  }
  std::vector<VictimCost> dearest_node;
  for (const VictimItem* item : items_) {
    VictimCost dearest;
    for (const VictimReplica& replica : item->replicas)
      dearest = std::max(dearest, at(node_cost, replica.position));
    dearest_node.push_back(dearest);
  }
  by_cost_ = RisingOrder(std::move(cost));
  by_price_ = RisingOrder(std::move(price));
  by_node_ = RisingOrder(std::move(dearest_node));
}

std::optional<std::vector<int>> VictimSolver::chosen() const {
  if (!best_) return std::nullopt;
  std::vector<int> chosen;
  for (int i = 0; i < std::ssize(items_); ++i)
    if (at(*best_, i) != 0) chosen.push_back(i);
  return chosen;
}

bool VictimSolver::begin(VictimCost cost_below) {
  best_.reset();
  best_cost_ = cost_below;
  missing_milli_ = room_.missing_milli();
  return cost_bound(missing_milli_, std::vector<char>(items_.size())) < best_cost_;
}

std::optional<std::vector<int>> VictimSolver::solve(VictimCost cost_below) {
  if (begin(cost_below))
    for (RisingOrder* const order : {&by_cost_, &by_price_, &by_node_})
      fill_and_take_back(*order);
  return chosen();
}

std::optional<std::vector<int>> VictimSolver::solve_exactly(VictimCost cost_below,
                                                            int& checks_left) {
  if (!begin(cost_below)) return std::nullopt;
  for (const VictimItem* item : items_)
    room_.free_item(*item);
  if (room_.fits()) {
    checks_left_ = checks_left;
    is_chosen_.assign(items_.size(), 0);
    is_decided_.assign(items_.size(), 0);
    branch(0, {}, missing_milli_);
    checks_left = checks_left_;
    if (best_ && checks_left_ < 0) remove_needless();
  }
  for (const VictimItem* item : items_)
    room_.take_item(*item);
  return chosen();
}

// A lower bound of what undecided items cost that add so much, parts of items allowed (Dantzig's
// bound of a knapsack).
VictimCost VictimSolver::cost_bound(long long missing_milli, const std::vector<char>& is_decided) {
  VictimCost cost;
  for (std::size_t rank = 0; rank < by_price_.size() && missing_milli > 0; ++rank) {
    const int item = by_price_.item(rank);
    if (at(is_decided, item) != 0 || at(milli_, item) == 0) continue;
    const long long milli = at(milli_, item);
    cost += at(items_, item)->cost * static_cast<double>(std::min(milli, missing_milli)) /
            static_cast<double>(milli);
    missing_milli -= milli;
  }
  return missing_milli > 0 ? kInfiniteCost : cost;
}

void VictimSolver::keep_if_cheaper(const std::vector<char>& is_chosen) {
  VictimCost cost;
  for (int i = 0; i < std::ssize(items_); ++i)
    if (at(is_chosen, i) != 0) cost += at(items_, i)->cost;
  if (!is_cheaper(cost, best_cost_)) return;
  best_cost_ = cost;
  best_ = is_chosen;
}

// Frees the cheapest items until they make room, then takes back what is needless of them, the
// dearest first.
void VictimSolver::fill_and_take_back(RisingOrder& order) {
  std::vector<int> freed;
  long long missing = missing_milli_;
  std::size_t next_check = 1;
  bool has_room = false;
  for (std::size_t i = 0; i < order.size() && !has_room; ++i) {
    const int item = order.item(i);
    freed.push_back(item);
    room_.free_item(*at(items_, item));
    missing -= at(milli_, item);
    if (i + 1 < order.size() && (missing > 0 || freed.size() < next_check)) continue;
    has_room = room_.fits();
    next_check = freed.size() + std::max<std::size_t>(1, freed.size() / kCheckedPart);
  }
  std::vector<char> is_chosen(items_.size());
  for (const int item : freed)
    at(is_chosen, item) = 1;
  std::reverse(freed.begin(), freed.end());
  if (has_room) take_back(freed, is_chosen);
  for (const int item : freed)
    if (at(is_chosen, item) != 0) room_.take_item(*at(items_, item));
  if (has_room) keep_if_cheaper(is_chosen);
}

// Takes the items back one after another, all but those that are needed then: in runs that grow as
// long as none is.
void VictimSolver::take_back(std::span<const int> items, std::vector<char>& is_chosen) {
  std::size_t run = 1;
  for (std::size_t begin = 0; begin < items.size();) {
    run = std::min(run, items.size() - begin);
    const auto taken = items.subspan(begin, run);
    for (const int item : taken)
      room_.take_item(*at(items_, item));
    --checks_left_;
    if (room_.fits()) {
      for (const int item : taken)
        at(is_chosen, item) = 0;
      begin += run;
      run *= 2;
      continue;
    }
    for (const int item : taken)
      room_.free_item(*at(items_, item));
    if (run == 1) ++begin;
    run = std::max<std::size_t>(1, run / 2);
  }
}

// A search that ran out of checks may end with some.
void VictimSolver::remove_needless() {
  for (int i = 0; i < std::ssize(items_); ++i)
    if (at(*best_, i) == 0) room_.take_item(*at(items_, i));
  const std::vector<int> chosen = chosen_by_falling_cost(*best_);
  if (!chosen.empty()) take_back(chosen, *best_);
  for (int i = 0; i < std::ssize(items_); ++i)
    if (at(*best_, i) == 0) room_.free_item(*at(items_, i));
}

// Decides the items in the order of falling cost: undecided and chosen ones are freed.
void VictimSolver::branch(std::size_t depth, VictimCost cost, long long missing_milli) {
  if (--checks_left_ < 0) return;
  if (!is_cheaper(cost + cost_bound(missing_milli, is_decided_), best_cost_)) return;
  if (depth == items_.size()) {
    keep_if_cheaper(is_chosen_);
    return;
  }
  const int item = by_cost_.item(items_.size() - 1 - depth);
  at(is_decided_, item) = 1;
  room_.take_item(*at(items_, item));
  if (room_.fits()) branch(depth + 1, cost, missing_milli);
  room_.free_item(*at(items_, item));
  at(is_chosen_, item) = 1;
  branch(depth + 1, cost + at(items_, item)->cost, missing_milli - at(milli_, item));
  at(is_chosen_, item) = 0;
  at(is_decided_, item) = 0;
}

std::vector<int> VictimSolver::chosen_by_falling_cost(const std::vector<char>& is_chosen) const {
  std::vector<int> chosen;
  for (int i = 0; i < std::ssize(items_); ++i)
    if (at(is_chosen, i) != 0) chosen.push_back(i);
  std::stable_sort(chosen.begin(), chosen.end(),
                   [this](int a, int b) { return at(items_, a)->cost > at(items_, b)->cost; });
  return chosen;
}

void VictimSolver::restore(const std::vector<char>& from, const std::vector<char>& to) {
  for (int i = 0; i < std::ssize(items_); ++i) {
    if (at(from, i) == at(to, i)) continue;
    if (at(to, i) != 0)
      room_.free_item(*at(items_, i));
    else
      room_.take_item(*at(items_, i));
  }
}

std::optional<std::vector<int>> VictimSolver::improve(const std::vector<int>& items,
                                                      VictimCost cost_below, int& moves_left) {
  best_.reset();
  best_cost_ = cost_below;
  moves_left_ = moves_left;
  const std::vector<char> is_none(items_.size());
  std::vector<char> is_chosen = is_none;
  for (const int item : items)
    at(is_chosen, item) = 1;
  std::vector<int> dearest = chosen_by_falling_cost(is_chosen);
  restore(is_none, is_chosen);
  // An exchange adds an item that costs less than the dearest, and never makes that dearer.
  std::vector<int> cheaper;
  std::vector<VictimCost> prices;
  for (int i = 0; i < std::ssize(items_) && !dearest.empty(); ++i) {
    if (!(at(items_, i)->cost < at(items_, dearest[0])->cost)) continue;
    cheaper.push_back(i);
    prices.push_back(price_of(i));
  }
  RisingOrder by_price(std::move(prices));
  for (bool is_improved = true; is_improved;) {
    is_improved = false;
    for (std::size_t rank = 0; rank < by_price.size() && moves_left_ > 0; ++rank) {
      const int added = at(cheaper, by_price.item(rank));
      if (at(is_chosen, added) == 0) is_improved |= exchange_for(added, is_chosen, dearest);
    }
  }
  restore(is_chosen, is_none);
  moves_left = moves_left_;
  return chosen();
}

// Adds the item and takes back what it makes needless of the dearest ones; keeps the change where
// the set becomes cheaper.
bool VictimSolver::exchange_for(int added, std::vector<char>& is_chosen,
                                std::vector<int>& dearest) {
  const VictimCost cost = at(items_, added)->cost;
  // One that costs less than what is added cannot pay for it alone.
  if (dearest.empty() || at(items_, dearest[0])->cost <= cost) return false;
  std::vector<int> removed;
  VictimCost saved;
  const auto moves_of = [this](int item) {
    return static_cast<int>(at(items_, item)->replicas.size());
  };
  room_.free_item(*at(items_, added));
  moves_left_ -= 2 * moves_of(added);
  for (std::size_t i = 0; i < dearest.size() && i < kExchangesTried; ++i) {
    const int item = dearest[i];
    if (removed.empty() && at(items_, item)->cost <= cost) break;
    moves_left_ -= 2 * moves_of(item);
    room_.take_item(*at(items_, item));
    if (room_.fits()) {
      removed.push_back(item);
      saved += at(items_, item)->cost;
    } else {
      room_.free_item(*at(items_, item));
    }
  }
  if (!is_cheaper(cost, saved)) {
    for (const int item : removed)
      room_.free_item(*at(items_, item));
    room_.take_item(*at(items_, added));
    return false;
  }
  for (const int item : removed)
    at(is_chosen, item) = 0;
  at(is_chosen, added) = 1;
  dearest = chosen_by_falling_cost(is_chosen);
  keep_if_cheaper(is_chosen);
  return true;
}

}  // namespace regatta::sched
