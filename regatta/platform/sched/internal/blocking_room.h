// sched/internal/blocking_room.h: the running jobs whose end would let a gang run below one domain.
#pragma once

#include <set>
#include <span>
#include <utility>
#include <vector>

#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// When each running job ends, by index into the running jobs: its median; infinite where it is not
// known, as of a degraded gang.
std::vector<double> median_ends(const ClusterSnapshot& snapshot);

// The nodes of one domain at one device type. Shares of devices count as one amount of a node. The
// arguments outlive it.
class BlockingRoom {
 public:
  // Jobs of `gone` have ended already.
  BlockingRoom(const ClusterSnapshot& snapshot, const std::vector<double>& ends,
               std::vector<int> nodes, const std::set<int>& gone);

  // Finds a node for each replica, the largest first, and the jobs whose end it takes; false where
  // even the empty nodes do not hold them. Cost: O((nodes + replicas + replicas of released jobs)
  // log nodes) for each role, and a trial for each released job.
  bool settle(std::span<const Role* const> replicas);

  const std::set<int>& released() const { return released_; }
  double last_end() const;
  // The amounts that are missing now on the nodes that the replicas take.
  const ResourceAmounts& missing() const { return missing_; }
  // Replicas that would fit now, one after the other.
  int startable(std::span<const Role* const> replicas) const;
  // Whole devices that one replica could have now: the most on a node.
  int startable_devices(const Role& role) const;

 private:
  struct Held {
    double end = 0;
    int job = 0;
    ResourceAmounts amounts;
  };
  struct Node {
    int index = 0;  // in the snapshot
    ResourceAmounts free_now;
    ResourceAmounts free;    // with what released jobs leave, without what replicas took
    ResourceAmounts taken;   // by replicas
    std::vector<Held> held;  // by rising end
  };
  // Fewest jobs, then the earliest end; among nodes that need none, the fewest free devices.
  struct Cost {
    int jobs = 0;
    double end = 0;
    int node = 0;
    friend auto operator<=>(const Cost&, const Cost&) = default;
  };
  ResourceAmounts amounts_on(const Node& node, const Role& role) const;
  std::vector<int> needed(const Node& node, const ResourceAmounts& amounts, bool& fits) const;
  void release(int job, std::vector<int>& changed);
  bool settle_role(const Role& role, int count);
  void drop_needless(std::span<const Role* const> replicas);
  // Places the replicas by best fit with the free amounts of `free`; how many.
  int place(std::span<const Role* const> replicas, std::vector<ResourceAmounts> free) const;

  const ClusterSnapshot& snapshot_;
  const std::vector<double>& ends_;
  std::vector<Node> nodes_;
  std::vector<int> position_;  // in nodes_, by node; -1: not of this domain
  std::set<int> released_;
  ResourceAmounts missing_;
};

}  // namespace regatta::sched
