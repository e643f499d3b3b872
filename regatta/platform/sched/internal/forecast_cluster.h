// sched/internal/forecast_cluster.h: a cluster by free amounts of its nodes, quick to copy and to
// place jobs on.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// Equal replicas of a role.
struct ForecastReplicas {
  int count = 0;
  ResourceAmounts amounts;  // of one; device memory of slices alone
  int whole_devices = 0;    // of one: they have all the memory that a device of the node has
};

// Jobs of one shape fit at the same places.
struct ForecastShape {
  std::vector<ForecastReplicas> replicas;  // of each role, the largest first
  std::vector<char> accepts;               // by device type
  TopologyLevel required = TopologyLevel::kCluster;
};

struct ForecastPlace {
  int node = 0;
  ResourceAmounts amounts;
};

class ForecastCluster {
 public:
  explicit ForecastCluster(const ClusterSnapshot& snapshot);

  // Index of the shape; equal jobs have one.
  int shape_of(const JobRequest& job);
  const std::vector<ForecastShape>& shapes() const { return shapes_; }

  bool accepts(const ForecastShape& shape, int node) const;
  int nodes() const { return static_cast<int>(nodes_.size()); }
  // Domains of the level, and the one of a node.
  int domains(TopologyLevel level) const { return domains_[static_cast<std::size_t>(level)]; }
  int domain_of(int node, TopologyLevel level) const;
  // The level below whose domains all replicas of the shape lie; one replica lies anywhere.
  static TopologyLevel level_of(const ForecastShape& shape);
  ResourceAmounts amounts_on(int node, const ForecastReplicas& replicas) const;

  using Free = std::vector<ResourceAmounts>;  // by node
  const Free& free_now() const { return free_; }

  // Best fit: each replica goes where it leaves the fewest devices free. Takes the places from
  // `free`.
  std::optional<std::vector<ForecastPlace>> place(int shape, Free& free) const;
  bool fits(int shape, Free& free) const;  // leaves `free` as it was
  static void give(const std::vector<ForecastPlace>& places, Free& free);
  // Where a running job holds what. Jobs that share a device beyond its whole count as parts of it.
  std::vector<ForecastPlace> places_of(const ClusterSnapshot& snapshot,
                                       const RunningJob& job) const;

 private:
  struct Node {
    int devices = 0;
    int device_memory_mib = 0;
    int type = 0;
    bool is_open = false;
    std::array<int, kTopologyLevels> domain{};
  };
  // A gang has nodes of one device type, below one domain.
  struct Area {
    int domain = 0;
    int type = -1;  // any
  };
  std::optional<std::vector<ForecastPlace>> place_in(const ForecastShape& shape, Area area,
                                                     Free& free) const;
  int best_node(const ForecastShape& shape, const ForecastReplicas& replicas, Area area,
                const Free& free) const;

  std::vector<Node> nodes_;
  std::array<int, kTopologyLevels> domains_{};  // number of them by level
  Free free_;
  std::map<std::pair<int, int>, int>
      mixed_milli_;  // taken of each mixed device, by node and device
  std::map<std::string, int> types_;
  std::vector<ForecastShape> shapes_;
  std::map<std::string, int> shape_index_;
};

}  // namespace regatta::sched
