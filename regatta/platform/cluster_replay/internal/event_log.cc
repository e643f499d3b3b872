#include "regatta/platform/cluster_replay/internal/event_log.h"

#include <iterator>

#include <fmt/format.h>

namespace regatta::cluster_replay {

void EventLog::add(double now, std::string_view event, std::string_view name,
                   std::span<const sched::ReplicaPlacement> replicas) {
  fmt::memory_buffer line;
  fmt::format_to(std::back_inserter(line), "{:.3f} {} {}", now, event, name);
  for (const sched::ReplicaPlacement& replica : replicas)
    fmt::format_to(std::back_inserter(line), " {}:{:x}", replica.node, replica.devices);
  const std::string_view text(line.data(), line.size());
  hash_ = fnv1a("\n", fnv1a(text, hash_));
  ++lines_;
  if (write_) write_(text);
}

}  // namespace regatta::cluster_replay
