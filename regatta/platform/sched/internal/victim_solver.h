// sched/internal/victim_solver.h: the cheapest items to free below one domain.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "regatta/platform/sched/internal/rising_order.h"
#include "regatta/platform/sched/internal/victim_room.h"

namespace regatta::sched {

// Frees items in an order until the gang fits and takes back what it does not need. As items only
// add room, a set that is too small stays too small without any item, which makes each test of one
// item cut the search.
class VictimSolver {
 public:
  // The room has entered a domain with nothing freed; it is so again after each call.
  VictimSolver(VictimRoom& room, std::vector<const VictimItem*> items);

  // Each function gives items that make room and cost less than `cost_below`, by rising index, each
  // of them needed; nothing where it finds no such set. `checks_left` is counted down, and ends a
  // search early.

  // By freeing in several orders.
  std::optional<std::vector<int>> solve(VictimCost cost_below);
  // The cheapest, by branch and bound, where the checks suffice.
  std::optional<std::vector<int>> solve_exactly(VictimCost cost_below, int& checks_left);
  // From a set that makes room, by exchanges of one item for others that free or take back about
  // `moves_left` replicas.
  std::optional<std::vector<int>> improve(const std::vector<int>& items, VictimCost cost_below,
                                          int& moves_left);

 private:
  void order_items();
  VictimCost price_of(int item) const;
  VictimCost cost_bound(long long missing_milli, const std::vector<char>& is_decided);
  void fill_and_take_back(RisingOrder& order);
  void take_back(std::span<const int> items, std::vector<char>& is_chosen);
  void branch(std::size_t depth, VictimCost cost, long long missing_milli);
  void remove_needless();
  bool exchange_for(int added, std::vector<char>& is_chosen, std::vector<int>& dearest);
  bool begin(VictimCost cost_below);
  std::optional<std::vector<int>> chosen() const;
  std::vector<int> chosen_by_falling_cost(const std::vector<char>& is_chosen) const;
  void restore(const std::vector<char>& from, const std::vector<char>& to);
  void keep_if_cheaper(const std::vector<char>& is_chosen);

  VictimRoom& room_;
  std::vector<const VictimItem*> items_;
  std::vector<long long> milli_;  // that each item adds
  RisingOrder by_cost_;
  RisingOrder by_price_;  // by the cost of what they add
  RisingOrder by_node_;   // by the cost of emptying the dearest of their nodes
  std::vector<char> is_chosen_;
  std::vector<char> is_decided_;
  std::optional<std::vector<char>> best_;
  VictimCost best_cost_ = kInfiniteCost;
  long long missing_milli_ = 0;
  int moves_left_ = 0;
  int checks_left_ = std::numeric_limits<int>::max();
};

}  // namespace regatta::sched
