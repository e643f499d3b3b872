#include "regatta/platform/sched/internal/victim_solver.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

// Sums of costs in another order differ in the last bits.
constexpr double kCostTolerance = 1e-9;

constexpr std::size_t kExchangesTried = 16;  // items for one
// Room is checked each time that the freed items have grown by this part of them.
constexpr std::size_t kCheckedPart = 16;

// Items by falling key, then by rising index.
std::vector<int> items_by_falling(const std::vector<double>& keys) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&keys](int a, int b) { return at(keys, a) > at(keys, b); });
  return order;
}

}  // namespace

VictimSolver::VictimSolver(VictimRoom& room, std::vector<const VictimItem*> items)
    : room_(room), items_(std::move(items)) {
  for (const VictimItem* item : items_)
    milli_.push_back(room.added_milli(*item));
  order_items();
}

// Three orders of taking back: the dearest items, the dearest for what they add, and those on the
// nodes that are dearest to empty.
void VictimSolver::order_items() {
  std::vector<double> cost;
  std::vector<double> price;
  int nodes = 0;
  for (const VictimItem* item : items_)
    for (const VictimReplica& replica : item->replicas)
      nodes = std::max(nodes, replica.position + 1);
  std::vector<double> node_cost(as_index(nodes));
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const VictimItem& item = *items_[i];
    cost.push_back(item.cost);
    price.push_back(item.cost / (static_cast<double>(milli_[i]) + 1));
    for (const VictimReplica& replica : item.replicas)
      if (item.shed < 0)
        at(node_cost, replica.position) += item.cost / static_cast<double>(item.replicas.size());
  }
  std::vector<double> dearest_node;
  for (const VictimItem* item : items_) {
    double dearest = 0;
    for (const VictimReplica& replica : item->replicas)
      dearest = std::max(dearest, at(node_cost, replica.position));
    dearest_node.push_back(dearest);
  }
  by_price_ = items_by_falling(price);
  orders_ = {items_by_falling(cost), by_price_, items_by_falling(dearest_node)};
  std::reverse(by_price_.begin(), by_price_.end());
}

std::optional<std::vector<int>> VictimSolver::chosen() const {
  if (!best_) return std::nullopt;
  std::vector<int> chosen;
  for (int i = 0; i < std::ssize(items_); ++i)
    if (at(*best_, i) != 0) chosen.push_back(i);
  return chosen;
}

bool VictimSolver::begin(double cost_below) {
  best_.reset();
  best_cost_ = cost_below;
  missing_milli_ = room_.missing_milli();
  return cost_bound(missing_milli_, std::vector<char>(items_.size())) < best_cost_;
}

std::optional<std::vector<int>> VictimSolver::solve(double cost_below) {
  if (begin(cost_below))
    for (const std::vector<int>& order : orders_)
      fill_and_take_back(order);
  return chosen();
}

std::optional<std::vector<int>> VictimSolver::solve_exactly(double cost_below, int& checks_left) {
  if (!begin(cost_below)) return std::nullopt;
  for (const VictimItem* item : items_)
    room_.free_item(*item);
  if (room_.fits()) {
    checks_left_ = checks_left;
    is_chosen_.assign(items_.size(), 0);
    is_decided_.assign(items_.size(), 0);
    branch(0, 0, missing_milli_);
    checks_left = checks_left_;
    if (best_ && checks_left_ < 0) remove_needless();
  }
  for (const VictimItem* item : items_)
    room_.take_item(*item);
  return chosen();
}

// A lower bound of what undecided items cost that add so much, parts of items allowed (Dantzig's
// bound of a knapsack).
double VictimSolver::cost_bound(long long missing_milli,
                                const std::vector<char>& is_decided) const {
  double cost = 0;
  for (const int item : by_price_) {
    if (missing_milli <= 0) return cost;
    if (at(is_decided, item) != 0 || at(milli_, item) == 0) continue;
    const long long milli = at(milli_, item);
    cost += at(items_, item)->cost * static_cast<double>(std::min(milli, missing_milli)) /
            static_cast<double>(milli);
    missing_milli -= milli;
  }
  return missing_milli > 0 ? std::numeric_limits<double>::infinity() : cost;
}

void VictimSolver::keep_if_cheaper(const std::vector<char>& is_chosen) {
  double cost = 0;
  for (int i = 0; i < std::ssize(items_); ++i)
    if (at(is_chosen, i) != 0) cost += at(items_, i)->cost;
  if (cost >= best_cost_ * (1 - kCostTolerance)) return;
  best_cost_ = cost;
  best_ = is_chosen;
}

// Frees the last items of the order until they make room, then takes back what is needless of them.
void VictimSolver::fill_and_take_back(const std::vector<int>& order) {
  std::vector<int> freed;
  long long missing = missing_milli_;
  std::size_t next_check = 1;
  bool has_room = false;
  for (std::size_t i = order.size(); i-- > 0 && !has_room;) {
    freed.push_back(order[i]);
    room_.free_item(*at(items_, order[i]));
    missing -= at(milli_, order[i]);
    if (i > 0 && (missing > 0 || freed.size() < next_check)) continue;
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
  std::vector<int> chosen;
  for (const int item : orders_[0])
    if (at(*best_, item) != 0) chosen.push_back(item);
  if (!chosen.empty()) take_back(chosen, *best_);
  for (int i = 0; i < std::ssize(items_); ++i)
    if (at(*best_, i) == 0) room_.free_item(*at(items_, i));
}

// Decides the items in the order of falling cost: undecided and chosen ones are freed.
void VictimSolver::branch(std::size_t depth, double cost, long long missing_milli) {
  if (--checks_left_ < 0) return;
  if (cost + cost_bound(missing_milli, is_decided_) >= best_cost_ * (1 - kCostTolerance)) return;
  if (depth == items_.size()) {
    keep_if_cheaper(is_chosen_);
    return;
  }
  const int item = orders_[0][depth];
  at(is_decided_, item) = 1;
  room_.take_item(*at(items_, item));
  if (room_.fits()) branch(depth + 1, cost, missing_milli);
  room_.free_item(*at(items_, item));
  at(is_chosen_, item) = 1;
  branch(depth + 1, cost + at(items_, item)->cost, missing_milli - at(milli_, item));
  at(is_chosen_, item) = 0;
  at(is_decided_, item) = 0;
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
                                                      double cost_below, int& moves_left) {
  best_.reset();
  best_cost_ = cost_below;
  moves_left_ = moves_left;
  const std::vector<char> is_none(items_.size());
  std::vector<char> is_chosen = is_none;
  for (const int item : items)
    at(is_chosen, item) = 1;
  std::vector<int> dearest;
  for (const int item : orders_[0])
    if (at(is_chosen, item) != 0) dearest.push_back(item);
  restore(is_none, is_chosen);
  for (bool is_improved = true; is_improved;) {
    is_improved = false;
    for (const int added : by_price_)
      if (at(is_chosen, added) == 0 && moves_left_ > 0)
        is_improved |= exchange_for(added, is_chosen, dearest);
  }
  restore(is_chosen, is_none);
  moves_left = moves_left_;
  return chosen();
}

// Adds the item and takes back what it makes needless of the dearest ones; keeps the change where
// the set becomes cheaper.
bool VictimSolver::exchange_for(int added, std::vector<char>& is_chosen,
                                std::vector<int>& dearest) {
  const double cost = at(items_, added)->cost;
  // One that costs less than what is added cannot pay for it alone.
  if (dearest.empty() || at(items_, dearest[0])->cost <= cost) return false;
  std::vector<int> removed;
  double gain = -cost;
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
      gain += at(items_, item)->cost;
    } else {
      room_.free_item(*at(items_, item));
    }
  }
  if (gain <= kCostTolerance * best_cost_) {
    for (const int item : removed)
      room_.free_item(*at(items_, item));
    room_.take_item(*at(items_, added));
    return false;
  }
  for (const int item : removed)
    at(is_chosen, item) = 0;
  at(is_chosen, added) = 1;
  dearest.clear();
  for (const int item : orders_[0])
    if (at(is_chosen, item) != 0) dearest.push_back(item);
  keep_if_cheaper(is_chosen);
  return true;
}

}  // namespace regatta::sched
