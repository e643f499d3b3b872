// mixing/internal/device_loads.h: puts workloads on devices at the least cost, from samples of
// their demand that belong together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/mixing/internal/need_distribution.h"

namespace regatta::mixing {

// Samples of one workload; sample i of all workloads happens at once.
struct LoadSamples {
  std::vector<float> demand;  // 0 to 1
  bool has_target = true;     // a latency target: its intervals can be missed
  Bytes memory{};
};

// Costs in devices, for the length of the samples.
struct LoadCosts {
  float interference = 0;    // interference.h
  double missed_price = 20;  // each workload's share of samples above capacity
  double move_price = 0;     // a workload that leaves the device on which it was
  Bytes memory{};            // of a device
  // Samples of two workloads happen in any combination, all have a latency target, and a device
  // misses a sample once, however many are on it.
  bool are_independent = false;
};

// The expected cost of one device.
struct DeviceCost {
  double missed_share = 0;  // samples in which demand with a latency target exceeds the capacity
  double lost = 0;          // demand beyond the capacity: mean, in devices
  double total = 0;         // 1, and missed and lost at their prices
};

// A device costs 1; each sample in which work with a latency target cannot be done is missed by all
// workloads with one; work that cannot be done in its sample is lost at the price of a device.
class DeviceLoads {
 public:
  // `homes`: the device of each workload so far, or -1. All have the same number of samples.
  DeviceLoads(std::span<const LoadSamples> loads, std::span<const int> homes, LoadCosts costs);

  // Gives each workload without a device one, then moves workloads while that pays, one by one, in
  // exchange, and all of a device at once. `exchanges`: random pairs that are tried, by `seed`.
  void improve(int rounds, int exchanges, std::uint64_t seed);

  const std::vector<int>& homes() const { return homes_; }
  int devices_in_use() const;
  // Means over the devices in use.
  double missed_share() const;

 private:
  struct Device {
    std::vector<int> members;
    std::vector<float> target;  // demand with a latency target, and its squares
    std::vector<float> target_squares;
    std::vector<float> all;
    std::vector<float> all_squares;
    Bytes memory{};
    int targets = 0;              // members with a latency target
    NeedTail need = tail_of({});  // of independent workloads
    DeviceCost cost;
  };
  // -1: none. The cost as it would be with `plus` and without `minus`.
  DeviceCost cost_with(const Device& device, int plus, int minus) const;
  DeviceCost independent_cost(const Device& device, int plus, int minus) const;
  NeedTail need_without(const Device& device, int minus) const;
  double move_cost(int load, int device) const;
  struct Choice {
    int device = -1;
    double cost = 0;
  };
  // The cheapest device for the workload beside `excluded`, at most `most`.
  Choice cheapest(int load, int excluded, bool may_open, double most) const;
  void put(int load, int device);
  void take(int load);
  void rebuild(Device& device);
  void place_all();
  bool relocate(int load);
  bool dissolve(int device);
  bool exchange(int first, int second);

  std::span<const LoadSamples> loads_;
  LoadCosts costs_;
  std::vector<int> before_;
  std::vector<int> homes_;
  std::vector<float> zeros_;
  std::vector<double> means_;
  std::vector<NeedDistribution> needs_;  // of independent workloads
  std::vector<Device> devices_;
};

}  // namespace regatta::mixing
