// sched/internal/victim_solver.h: the cheapest items to free below one domain.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

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
  std::optional<std::vector<int>> solve(double cost_below);
  // The cheapest, by branch and bound, where the checks suffice.
  std::optional<std::vector<int>> solve_exactly(double cost_below, int& checks_left);
  // From a set that makes room, by exchanges of one item for others that free or take back about
  // `moves_left` replicas.
  std::optional<std::vector<int>> improve(const std::vector<int>& items, double cost_below,
                                          int& moves_left);

 private:
  void order_items();
  double cost_bound(long long missing_milli, const std::vector<char>& is_decided) const;
  void fill_and_take_back(const std::vector<int>& order);
  void take_back(std::span<const int> items, std::vector<char>& is_chosen);
  void branch(std::size_t depth, double cost, long long missing_milli);
  void remove_needless();
  bool exchange_for(int added, std::vector<char>& is_chosen, std::vector<int>& dearest);
  bool begin(double cost_below);
  std::optional<std::vector<int>> chosen() const;
  void restore(const std::vector<char>& from, const std::vector<char>& to);
  void keep_if_cheaper(const std::vector<char>& is_chosen);

  VictimRoom& room_;
  std::vector<const VictimItem*> items_;
  std::vector<long long> milli_;          // that each item adds
  std::vector<std::vector<int>> orders_;  // in which items are taken back
  std::vector<int> by_price_;             // by rising cost of what they add
  std::vector<char> is_chosen_;
  std::vector<char> is_decided_;
  std::optional<std::vector<char>> best_;
  double best_cost_ = std::numeric_limits<double>::infinity();
  long long missing_milli_ = 0;
  int moves_left_ = 0;
  int checks_left_ = std::numeric_limits<int>::max();
};

}  // namespace regatta::sched
