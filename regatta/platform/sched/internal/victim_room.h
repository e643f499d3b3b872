// sched/internal/victim_room.h: whether a gang fits below a domain once some victims are gone.
#pragma once

#include <vector>

#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/internal/gang_search.h"

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
  double cost = 0;
  std::vector<VictimReplica> replicas;
};

// Counts the room of each role as victims come and go, so that a check of a gang of one role takes
// no search.
class VictimRoom {
 public:
  // `replicas`: more than every id.
  VictimRoom(const GangTask& task, int replicas);
  VictimRoom(const VictimRoom&) = delete;
  VictimRoom& operator=(const VictimRoom&) = delete;

  // Looks at one domain and type of devices; nothing may be freed at this time.
  void enter(DomainRef domain, int device_type);
  DomainRef domain() const { return domain_; }
  NodeRange range() const { return range_; }

  // Frees the item's replicas below the domain, or takes them back. A replica that two items have
  // is free as long as one of them is.
  void free_item(const VictimItem& item);
  void take_item(const VictimItem& item);
  bool fits();

  // Thousandths of devices that the gang can use: what it lacks, and what the item would add.
  long long missing_milli() const;
  long long added_milli(const VictimItem& item) const;

 private:
  void update(int position);
  bool fits_together();

  FreeCapacity trial_;
  GangTask task_;  // on trial_
  std::vector<std::vector<int>> kept_;
  std::vector<int> freed_;  // by replica: items that have freed it
  DomainRef domain_;
  NodeRange range_;
  int device_type_ = kAnyDeviceType;
  std::vector<std::vector<int>> room_;  // by role and position from range_.begin
  std::vector<long long> room_sum_;     // by role, with what is kept
  int states_left_;
};

}  // namespace regatta::sched
