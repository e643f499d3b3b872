// comm/internal/engine/traffic_counters.h: the bytes that a rank sent to each rank of its world.
// All functions may be called from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/runtime/comm/communicator.h"

namespace regatta::comm {

class TrafficCounters {
 public:
  explicit TrafficCounters(std::size_t world_size) : network_(world_size), shared_(world_size) {}

  void add_network(int peer, std::size_t bytes) { add(at(network_, peer), bytes); }
  // Through the rings of shared memory, or read by `peer` from this rank's shared segment.
  void add_shared(int peer, std::size_t bytes) { add(at(shared_, peer), bytes); }

  long long network(int peer) const { return read(at(network_, peer)); }
  long long total(int peer) const { return network(peer) + read(at(shared_, peer)); }
  Traffic snapshot() const {
    Traffic traffic;
    for (std::size_t peer = 0; peer < network_.size(); ++peer) {
      traffic.network_bytes.push_back(read(network_[peer]));
      traffic.shared_bytes.push_back(read(shared_[peer]));
    }
    return traffic;
  }
  // Counts from zero again.
  void restart() {
    for (auto* counters : {&network_, &shared_})
      for (Counter& counter : *counters)
        counter.bytes.store(0, std::memory_order_relaxed);
  }

 private:
  struct Counter {
    std::atomic<long long> bytes = 0;
  };
  static void add(Counter& counter, std::size_t bytes) {
    counter.bytes.fetch_add(static_cast<long long>(bytes), std::memory_order_relaxed);
  }
  static long long read(const Counter& counter) {
    return counter.bytes.load(std::memory_order_relaxed);
  }

  std::vector<Counter> network_;  // by world rank
  std::vector<Counter> shared_;
};

}  // namespace regatta::comm
