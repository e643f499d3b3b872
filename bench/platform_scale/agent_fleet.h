// bench/platform_scale/agent_fleet.h: the agents of many servers in one process: each has its own
// certificate, its own connection, and the core of the real agent; only the processes of its
// replicas are imagined.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "regatta/base/core/units.h"
#include "regatta/base/tls/certificate.h"

namespace regatta::bench {

struct FleetOptions {
  int nodes = 100;
  int devices = 8;  // of each
  std::string url;
  tls::Identity authority;  // of the controller: signs the nodes' certificates
  Seconds job_time{60};     // mean of exponential run times
  int connecting_max = 100;
  std::uint64_t seed = 1;
};

struct FleetCounts {
  int connected = 0;          // that the controller has welcomed
  long long connections = 0;  // of all time
  long long started = 0;      // replicas
  long long ended = 0;
  long long lease_ends = 0;  // replicas that agents ended because their lease was over
};

// The jobs of servers that died, and which of them run again.
struct DeathReport {
  int jobs = 0;          // that ran there
  int placed_again = 0;  // and have started elsewhere
  Seconds last_placed;   // after the death
};

class AgentFleet {
 public:
  // Connects in a thread of its own; connections that end are made again.
  explicit AgentFleet(FleetOptions options);
  ~AgentFleet();
  AgentFleet(const AgentFleet&) = delete;
  AgentFleet& operator=(const AgentFleet&) = delete;

  // As real agents do. From the time at which all are connected: connecting is work.
  void run_before_others();
  static std::string name_of(int node);
  FleetCounts counts() const;
  // As a server that loses its power: it says nothing more, and its connection stays open. Once.
  void kill(int node);
  DeathReport death_report() const;  // of all servers that were killed

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::bench
