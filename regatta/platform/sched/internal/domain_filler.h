// sched/internal/domain_filler.h: fills the items below a domain level by level, best fit.
#pragma once

#include <span>
#include <vector>

#include "regatta/platform/sched/internal/role_shares.h"

namespace regatta::sched {

// Items are the domains of one level below the domain to fill: nodes, or domains in which
// subgroups stay.
class DomainFiller {
 public:
  struct Items {
    TopologyLevel level = TopologyLevel::kServer;
    int first = 0;              // domain of `level`
    std::vector<int> capacity;  // units that each holds, from `first`
    long long unit_milli = 0;   // device shares of a unit
  };
  DomainFiller(const FreeCapacity& free, FillOrder order, Items items);

  // Puts `units` into the items below `domain`, which hold them.
  void fill(DomainRef domain, int units);
  // Units of each item, from `first`.
  const std::vector<int>& amounts() const { return amounts_; }

 private:
  struct Child {
    DomainRef domain;
    int capacity = 0;
    long long free_milli = 0;
    bool is_wholly_free = false;
    double failures = 0;  // of a node, in the mean
  };
  std::vector<Child> children_of(DomainRef domain) const;
  bool goes_before(const Child& a, const Child& b) const;
  bool fits_better(const Child& a, const Child& b) const;
  void fill_in_order(std::vector<Child> children, int units);
  void fill_evenly(const std::vector<Child>& children, int units);

  const FreeCapacity& free_;
  const ClusterDomains& domains_;
  FillOrder order_;
  Items items_;
  std::vector<int> capacity_before_;
  std::vector<int> amounts_;
};

}  // namespace regatta::sched
