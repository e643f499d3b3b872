// sched/internal/victim_room.h: whether a gang fits below a domain once some victims are gone.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_search.h"
#include "regatta/platform/sched/internal/node_classes.h"
#include "regatta/platform/sched/internal/pair_shares.h"
#include "regatta/platform/sched/internal/victim_cost.h"

namespace regatta::sched {

// A replica that may make room; `id` is unique.
struct VictimReplica {
  int id = 0;
  int position = 0;
  const Role* role = nullptr;
  ReplicaPlacement placement;
};

// An eviction, or one replica of an elastic job.
struct VictimItem {
  int option = 0;
  int shed = -1;  // index into the job's replicas; -1: the whole job
  VictimCost cost;
  std::vector<VictimReplica> replicas;
};

inline constexpr int kRoomVisitsMax = 200'000;
inline constexpr int kSearchedNodesMax = 256;

// Counts the room of each role as victims come and go, so that a check takes no search: exact for
// one role. Several roles are searched together, as long as that takes no more than kRoomVisitsMax
// visits of nodes in all; two roles, of which the smaller one has no subgroups, are counted by what
// the larger one takes from it, which is exact where a replica never takes less than the one before
// it on a node and no subgroup is incomplete; else they are searched too in domains of at most
// kSearchedNodesMax nodes. Three roles and more without subgroups are counted by classes of equal
// nodes, and searched in such domains. A check that is not exact only refuses.
class VictimRoom {
 public:
  // `replicas`: more than every id.
  VictimRoom(const GangTask& task, int replicas);
  VictimRoom(const VictimRoom&) = delete;
  VictimRoom& operator=(const VictimRoom&) = delete;

  // Looks at one domain and type of devices; nothing may be freed at this time.
  void enter(DomainRef domain, int device_type);

  // Frees the item's replicas below the domain, or takes them back. A replica that two items have
  // is free as long as one of them is.
  void free_item(const VictimItem& item);
  void take_item(const VictimItem& item);
  bool fits();
  // While all items are freed: whether this one can help any set of them.
  bool is_useful(const VictimItem& item) const;

  // Replicas freed or taken back so far.
  long long trial_moves() const { return trial_moves_; }

  // Thousandths of devices that the gang can use: what it lacks, and what the item would add.
  long long missing_milli() const;
  long long added_milli(const VictimItem& item) const;

 private:
  static constexpr int kPairReplicasMax = 64;  // of a role on a node; more are not counted

  // Room for a role, by domain of its subgroups.
  struct RoleRoom {
    int subgroup = 1;  // replicas
    TopologyLevel level = TopologyLevel::kServer;
    int first = 0;              // domain of `level`
    std::vector<int> node;      // by position from range_.begin
    std::vector<int> entered;   // the same with nothing freed
    std::vector<int> domain;    // from `first`
    long long subgroups = 0;    // whole ones, of all domains
    int domains_with_rest = 0;  // that have room for the incomplete subgroup beside whole ones
    int rest = 0;               // replicas of the incomplete subgroup
  };
  int replicas_needed(int role) const { return at(task_.size, role) - at(kept_count_, role); }
  bool holds_alone(int role) const;
  bool holds_subgroups_beside_kept(int role) const;
  void count_domain(RoleRoom& room, int domain, int sign);
  void update(int position);
  void count_pair(int position);
  void count_class(int position);
  bool holds_pair() const;
  bool holds_classes() const;
  bool fits_together();

  FreeCapacity trial_;
  GangTask task_;                       // on trial_
  std::vector<std::vector<int>> kept_;  // by role and position; empty: none
  std::vector<int> kept_count_;         // by role
  std::vector<int> freed_;              // by replica: items that have freed it
  DomainRef domain_;
  bool has_kept_below_ = true;  // the domain holds all that the gang keeps
  NodeRange range_;
  int device_type_ = kAnyDeviceType;
  std::vector<RoleRoom> room_;  // by role
  // The part of a node in the counts below.
  struct PairCount {
    int smaller = 0;
    int larger = 0;
    bool is_even = true;
    std::array<std::uint8_t, kPairReplicasMax> loss{};  // by replica of the larger role
  };
  void add_count(int position, int sign);
  std::vector<PairCount> pair_counts_;  // by position from range_.begin
  // Two roles on many nodes: replicas of the larger one by the number of replicas of the smaller
  // one for which they leave no room; and those of the smaller one on empty nodes.
  bool is_pair_ = false;
  std::vector<std::array<long long, kPairReplicasMax + 1>> larger_by_loss_;
  int loss_most_ = 0;  // of all counted since the domain was entered
  long long smaller_ = 0;
  long long uneven_nodes_ = 0;  // where the count of the pair is too small
  RolePair pair_;
  bool is_classed_ = false;
  NodeClasses classes_;              // of the nodes of the domain
  std::vector<NodeClass> class_at_;  // by position from range_.begin
  long long trial_moves_ = 0;
  int visits_left_ = kRoomVisitsMax;
};

}  // namespace regatta::sched
