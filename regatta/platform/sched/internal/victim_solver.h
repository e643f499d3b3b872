// sched/internal/victim_solver.h: the cheapest items to free below one domain.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "regatta/platform/sched/internal/victim_room.h"

namespace regatta::sched {

// Starts from all items freed and takes back what the gang does not need. As items only add room,
// a set that is too small stays too small without any item, which makes each test of one item cut
// the search.
class VictimSolver {
 public:
  // The room has entered a domain; it is as before after each call.
  VictimSolver(VictimRoom& room, std::span<const VictimItem> items);

  // Each function gives items that make room and cost less than `cost_below`, by rising index, each
  // of them needed; nothing where it finds no such set. `checks_left` is counted down, and ends a
  // search early.

  // By taking back in several orders.
  std::optional<std::vector<int>> solve(double cost_below);
  // The cheapest, by branch and bound, where the checks suffice.
  std::optional<std::vector<int>> solve_exactly(double cost_below, int& checks_left);
  // From a set that makes room, by exchanges of one item for others.
  std::optional<std::vector<int>> improve(const std::vector<int>& items, double cost_below,
                                          int& checks_left);

 private:
  void order_items();
  double cost_bound(long long missing_milli, const std::vector<char>& is_decided) const;
  void reverse_delete(const std::vector<int>& order);
  void take_back(std::span<const int> items, std::vector<char>& is_chosen);
  void branch(std::size_t depth, double cost, long long missing_milli);
  void remove_needless();
  bool exchange_for(int added, std::vector<char>& is_chosen);
  bool free_all(double cost_below);
  std::optional<std::vector<int>> take_all();
  void restore(const std::vector<char>& from, const std::vector<char>& to);
  void keep_if_cheaper(const std::vector<char>& is_chosen);

  VictimRoom& room_;
  std::span<const VictimItem> items_;
  std::vector<long long> milli_;          // that each item adds
  std::vector<std::vector<int>> orders_;  // in which items are taken back
  std::vector<int> by_price_;             // by rising cost of what they add
  std::vector<char> is_chosen_;
  std::vector<char> is_decided_;
  std::optional<std::vector<char>> best_;
  double best_cost_ = std::numeric_limits<double>::infinity();
  int checks_left_ = std::numeric_limits<int>::max();
};

}  // namespace regatta::sched
