// cluster_replay/internal/device_use.h: the jobs on each device, and what it gives each of them.
#pragma once

#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/mixing/device_division.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::cluster_replay {

// Share of its demand that a job is served on its devices: the least of them, and their mean.
struct ServedShare {
  double least = 1;
  double mean = 1;
  bool is_met = true;  // on all of them, within the latency target where it has one
};

// Jobs are numbers below `jobs`. Interference, link, lease and interval are those of `rule`.
class DeviceUse {
 public:
  DeviceUse(const std::vector<sched::ClusterNode>& nodes, int jobs,
            const mixing::DivisionRule& rule);

  // The job needs all of its share of each device until set_demand() says another.
  void add(int job, const sched::JobRequest& request,
           std::span<const sched::ReplicaPlacement> replicas);
  void remove(int job);
  void set_demand(int job, double share);
  // Jobs on this device share it in this way; without one each has its own share.
  void set_mode(int node, int device, mixing::MixMode mode);
  void clear_mode(int node, int device);

  // Devices whose division depends on the time, or on the interval, are divided anew.
  void begin_interval();
  // Divides the devices that changed since the last call; `time` is that of the day. The jobs whose
  // served share is another now, each once.
  std::vector<int> divide(Seconds time);
  const ServedShare& served(int job) const;

 private:
  struct User {
    int job = 0;
    double share = 0;
    bool has_target = false;
    Bytes memory{};
    double served = 1;
    bool is_met = true;
  };
  struct Device {
    std::vector<User> users;
    Bytes memory{};
    mixing::MixMode mode = mixing::MixMode::kShared;
    bool is_mixed = false;
    bool is_changed = false;
    int resident = -1;
  };
  struct Job {
    std::vector<int> devices;
    mixing::DutyProfile duty;
    ServedShare served;
    bool is_changed = false;
  };
  int index_of(int node, int device) const;
  void mark(int device);
  void divide_one(Device& device, Seconds time);
  void update(int job);

  std::vector<int> first_devices_;  // of each node
  std::vector<Device> devices_;
  std::vector<Job> jobs_;
  mixing::DivisionRule rule_;
  std::vector<int> changed_;  // devices
  std::vector<mixing::DeviceDemand> demands_;
  mixing::DeviceDivider divider_;
};

}  // namespace regatta::cluster_replay
