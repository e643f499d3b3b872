// torch/monitored_barrier.h: a barrier through the store that names the missing ranks.
#pragma once

#include <chrono>
#include <cstdint>

#include <torch/csrc/distributed/c10d/Store.hpp>

namespace regatta_torch {

struct MonitoredBarrier {
  int rank = 0;
  int size = 1;
  std::uint64_t number = 0;  // counts the barriers of the group
  std::chrono::milliseconds timeout{0};
  bool names_all = false;  // else the first one that is missing
};

// Returns when every rank has come; throws the same error on those that came when one did not.
void monitored_barrier(c10d::Store& store, const MonitoredBarrier& barrier);

}  // namespace regatta_torch
