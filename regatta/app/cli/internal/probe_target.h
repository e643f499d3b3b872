// cli/internal/probe_target.h: what `regatta probe` was asked for, and the servers that it probes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/lab/lab.h"

namespace regatta::cli {

struct ProbeOptions {
  std::string cluster;
  std::string lab;
  std::string listen;
  std::string period = "10ms";
  std::string duration;
  std::string wait;
  std::string heal_socket;
  std::string counters;
  std::string transport = "udp";
  bool heals = false;
  bool lists_overlaps = false;
  bool json = false;

  bool has_healer() const { return heals || !heal_socket.empty(); }
};

struct ProbeTimes {
  Seconds period;
  Seconds duration;  // 0: until Ctrl-C
  Seconds wait;      // for servers that do not report yet
};

// kInvalidInput for a time that is out of range or means nothing here.
Result<ProbeTimes> parse_times(const ProbeOptions& options);

// The probed servers: those of a lab, or real ones.
struct ProbeTarget {
  std::string name;
  std::optional<lab::LabInfo> lab;
  topo::Graph graph;
  fabric::Routes routes;
  std::vector<std::uint32_t> seeds;  // by NodeId
};

// kInvalidInput where the options contradict each other or the cluster.
Result<ProbeTarget> find_target(const ProbeOptions& options);

}  // namespace regatta::cli
