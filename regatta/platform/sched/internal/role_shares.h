// sched/internal/role_shares.h: shares the replicas of one role out over the nodes of a domain.
#pragma once

#include <optional>
#include <vector>

#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::sched {

struct DomainRef {
  TopologyLevel level = TopologyLevel::kCluster;
  int index = 0;  // into the domains of the level

  bool operator==(const DomainRef&) const = default;
};

// New replicas on a node.
struct NodeShare {
  int position = 0;
  int replicas = 0;
};

// All orders put what is left into the domain or node that it fills best.
enum class FillOrder {
  kFewest,      // the largest room first: few nodes and domains
  kPartlyUsed,  // what is wholly free last
  kSafest,      // the least expected failures first
  kSpread       // evenly
};

// The room for one role on the nodes of a range, with the limits of its subgroups.
class RoleShares {
 public:
  struct Request {
    const FreeCapacity& free;  // the orders of filling look at it
    const Role& role;
    NodeRange range;        // positions; domains that are asked about lie in it
    std::vector<int> room;  // replicas that may come, by position from range.begin
    std::vector<int> kept;  // replicas that the gang has there; empty: none
    int replicas = 0;       // with those kept in the range
  };
  explicit RoleShares(Request request);

  // Whether the replicas fit below the domain; exact. Time: one for each domain of the subgroups.
  bool holds(DomainRef domain) const;
  // Whether subgroups limit the shares below the domain.
  bool has_subgroups(DomainRef domain) const;
  // As holds(), with the new replicas on each node, by rising position.
  std::optional<std::vector<NodeShare>> share_out(DomainRef domain, FillOrder order) const;

 private:
  // How subgroups are spread over the domains below which each stays: `lowest` new replicas to
  // complete those that kept replicas have begun, and up to `units` times a whole subgroup.
  struct SubgroupPlan {
    int first = 0;  // domain of the subgroups' level
    std::vector<int> lowest;
    std::vector<int> units;
    int units_needed = 0;
  };
  std::optional<SubgroupPlan> plan_subgroups(DomainRef domain) const;
  int room_of(NodeRange range) const;
  int kept_of(NodeRange range) const;

  Request request_;
  std::vector<int> room_before_;
  std::vector<int> kept_before_;
};

}  // namespace regatta::sched
