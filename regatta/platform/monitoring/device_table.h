// monitoring/device_table.h: what every device of the cluster does now and did in the last hour,
// and who has it: arrays with a place for each device, in the order of nodes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/control/cluster_tables.h"
#include "regatta/platform/node_protocol/node_message.h"

namespace regatta::monitoring {

// Bits of a device's state.
inline constexpr std::uint8_t kDeviceHasJob = 1;
inline constexpr std::uint8_t kDeviceFailed = 2;
inline constexpr std::uint8_t kDeviceCordoned = 4;
inline constexpr std::uint8_t kDeviceDraining = 8;
inline constexpr std::uint8_t kDeviceSilent = 16;

inline constexpr Seconds kStepTime{10};
inline constexpr std::size_t kStepsKept = 360;  // an hour: 720 bytes a device

struct NodePlaces {
  std::uint32_t first = 0;
  std::uint8_t count = 0;
  node_protocol::ReadingSource source = node_protocol::ReadingSource::kNone;
};

// Places whose figures have changed: pairs of a first place and a number of places.
using PlaceRuns = std::vector<std::uint32_t>;
struct DeviceChanges {
  std::string cursor;
  bool is_reset = false;  // read all anew
  PlaceRuns use;          // and memory
  PlaceRuns state;        // and job
};

// A second of a job: sums over its devices.
struct JobSecond {
  control::JobId job = 0;
  int measured = 0;   // devices whose use is known
  double used = 0;    // of these: the parts that worked
  double memory = 0;  // of these: the parts of their memory in use
};

class DeviceTable {
 public:
  // `epoch`: differs between processes; letters and digits.
  explicit DeviceTable(std::string epoch) : epoch_(std::move(epoch)) {}

  // Places for the devices that the nodes have now; readings and history stay with their devices.
  void update_layout(const control::ClusterTables& tables);
  // For a node that has its places. Readings of devices that it does not have are left out.
  void take(int node, const node_protocol::DeviceReadings& readings);
  void forget(int node);  // its agent is away: nothing is known
  // State and job of the node's devices, as the tables have them.
  void update_node(const control::ClusterTables& tables, int node);

  // A second has passed: what devices do now counts for the present step.
  void end_second(const std::function<void(const JobSecond&)>& sink);
  // Adds the mean of the present step to the history.
  void end_step(std::int64_t end_ms);

  std::size_t count() const { return use_.size(); }
  const std::vector<NodePlaces>& nodes() const { return nodes_; }
  const std::vector<std::uint8_t>& use() const { return use_; }
  const std::vector<std::uint8_t>& memory() const { return memory_; }
  const std::vector<std::uint8_t>& state() const { return state_; }
  const std::vector<control::JobId>& jobs() const { return jobs_; }
  const std::vector<node_protocol::SharedTenant>& shared(int node) const;
  // The means of a device's steps, the oldest first; kUnknownPercent where nothing is known.
  std::vector<std::uint8_t> use_history(std::uint32_t place) const;
  std::vector<std::uint8_t> memory_history(std::uint32_t place) const;
  std::int64_t history_end_ms() const { return steps_.empty() ? 0 : steps_.back().end_ms; }

  // Stands for all changes up to now.
  std::string cursor();
  // Changes after `cursor`; of another epoch or layout, or no cursor at all: a reset.
  DeviceChanges changes_since(std::string_view cursor);

 private:
  struct Step {
    std::int64_t end_ms = 0;
    std::vector<std::uint8_t> use;
    std::vector<std::uint8_t> memory;
  };
  struct Sums {
    std::uint16_t use = 0;
    std::uint16_t memory = 0;
    std::uint8_t uses = 0;  // seconds in which it was known
    std::uint8_t memories = 0;
  };
  void move_places(const std::vector<NodePlaces>& to, std::size_t count);
  void touch() { is_dirty_ = true; }

  std::string epoch_;
  std::uint32_t layout_ = 0;
  std::uint32_t sequence_ = 1;  // of the changes that come
  bool is_dirty_ = false;       // some have come
  std::vector<NodePlaces> nodes_;
  std::vector<std::uint8_t> use_;
  std::vector<std::uint8_t> memory_;
  std::vector<std::uint8_t> state_;
  std::vector<control::JobId> jobs_;
  std::vector<std::uint32_t> use_stamps_;
  std::vector<std::uint32_t> state_stamps_;
  std::vector<Sums> sums_;
  std::vector<std::vector<node_protocol::SharedTenant>> shared_;  // by node
  std::deque<Step> steps_;
};

}  // namespace regatta::monitoring
