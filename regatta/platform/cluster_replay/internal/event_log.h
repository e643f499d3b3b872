// cluster_replay/internal/event_log.h: a line for each event of a replay, and the hash of all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "regatta/base/core/stats.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::cluster_replay {

class EventLog {
 public:
  // `write` may be empty and outlives the log.
  explicit EventLog(const std::function<void(std::string_view)>& write) : write_(write) {}

  // "TIME EVENT JOB NODE:DEVICES ...", devices as a hexadecimal set.
  void add(double now, std::string_view event, std::string_view name,
           std::span<const sched::ReplicaPlacement> replicas = {});

  std::uint64_t hash() const { return hash_; }
  long long lines() const { return lines_; }

 private:
  const std::function<void(std::string_view)>& write_;
  std::uint64_t hash_ = kFnv1aBasis;
  long long lines_ = 0;
};

}  // namespace regatta::cluster_replay
