// sched/internal/forecast_cluster.h: a cluster by free amounts of its nodes, quick to copy and to
// place jobs on.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::sched {

// Jobs of one shape fit at the same places.
struct ForecastShape {
  std::vector<std::pair<int, int>> replicas;  // number and thousandths of devices of each role
  std::vector<char> accepts;                  // by device type
  TopologyLevel required = TopologyLevel::kCluster;
};

struct ForecastPlace {
  int node = 0;
  int milli = 0;
};

class ForecastCluster {
 public:
  explicit ForecastCluster(const ClusterSnapshot& snapshot);

  // Index of the shape; equal jobs have one.
  int shape_of(const JobRequest& job);
  const std::vector<ForecastShape>& shapes() const { return shapes_; }

  bool accepts(int shape, int node) const;

  using Free = std::vector<int>;  // thousandths by node
  const Free& free_now() const { return free_; }

  // Best fit: each replica goes where it leaves the least free. Takes the places from `free`.
  std::optional<std::vector<ForecastPlace>> place(int shape, Free& free) const;
  static void give(const std::vector<ForecastPlace>& places, Free& free);
  // Jobs that share a device beyond its whole count as parts of it.
  std::vector<ForecastPlace> places_of(const RunningJob& job) const;

 private:
  struct Node {
    int devices = 0;
    int type = 0;
    bool is_open = false;
    std::array<int, kTopologyLevels> domain{};
  };
  // The nodes of a domain at the shape's level, or all; takes nothing where a replica fits nowhere.
  std::optional<std::vector<ForecastPlace>> place_in(const ForecastShape& shape, int domain,
                                                     Free& free) const;

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
