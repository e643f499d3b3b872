// node_agent/internal/replica_meter.h: what the replicas of a server use of its processors and its
// memory: for devices that are emulated, and so do no work of their own.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/platform/control/node.h"
#include "regatta/platform/node_protocol/node_message.h"

namespace regatta::node_agent {

struct MeasuredReplica {
  control::ReplicaKey key;
  std::uint32_t devices = 0;
  std::string cgroup;  // "": its processes are those below the supervisor
  pid_t supervisor = -1;
};

// A replica: what it has used since its start, and holds now. Source: cgroup-v2.rst (cpu.stat,
// memory.current); proc(5) (stat, statm).
struct ReplicaUse {
  node_protocol::ReadingSource source = node_protocol::ReadingSource::kNone;
  double processor_s = 0;
  double memory_bytes = 0;
};
// By the files of its cgroup, where they are (v2); else by its processes, whose resident sets count
// in full. Time of processes that ended counts once their parent, which is in the group, has waited
// for them.
ReplicaUse measure_replica(const MeasuredReplica& replica);

// A device's share is an equal part of the server's processors and memory.
class ReplicaMeter {
 public:
  ReplicaMeter(double processors, double memory_bytes, int devices)
      : processors_(processors), memory_bytes_(memory_bytes), devices_(devices) {}

  // Use between the last call and `now_s` (seconds of one monotonic clock), memory now, of all
  // devices: those of a replica all have its mean; a replica that is new is not known yet, and a
  // device without one does nothing.
  node_protocol::DeviceReadings read(std::span<const MeasuredReplica> replicas, double now_s);

 private:
  struct Earlier {
    double processor_s = 0;
    double time_s = 0;
  };
  double processors_;
  double memory_bytes_;
  int devices_;
  std::map<control::ReplicaKey, Earlier> earlier_;
};

}  // namespace regatta::node_agent
