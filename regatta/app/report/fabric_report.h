// report/fabric_report.h: servers and fabrics, and what checks and simulations of them found: text
// for people, JSON for programs. Texts end with a newline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/gpu/device/discover.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/fabric_summary.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/design.h"
#include "regatta/network/fabric/port_pfc_watchdog.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/scenario.h"
#include "regatta/network/simulate/simulated_network.h"
#include "regatta/network/simulate/step_shape.h"

namespace regatta::report {

// `regatta topo`: a cluster, or the machine that was discovered.
std::string cluster_text(const topo::Cluster& cluster);
nlohmann::json cluster_json(const topo::Cluster& cluster);
std::string machine_text(const device::DiscoveredServer& server);
nlohmann::json machine_json(const device::DiscoveredServer& server);

// `regatta fabric design`: a design with what its graph says of it.
struct FabricDesignResult {
  fabric::Design design;
  topo::Cluster cluster;
  topo::Graph graph;
  topo::FabricSummary summary;
};
std::string fabric_design_text(const FabricDesignResult& drawn);
// The keys of docs/formats/fabric_design.md.
nlohmann::json fabric_design_json(const FabricDesignResult& drawn);

// `regatta fabric check`: deadlocks of the fabric as it is and after failures.

// After `at_once` failures, with the shortest paths.
struct FailureCheckResult {
  int at_once = 0;
  fabric::FailureCheck check;
};

// The same with routes that the user wrote.
struct RouteCheckResult {
  int at_once = 0;
  fabric::RouteFailureCheck check;
};

struct FabricCheckResult {
  fabric::DeadlockCheck now;
  std::optional<fabric::RouteLoop> loop;       // of given routes
  std::vector<FailureCheckResult> after;       // by the number of failures, up to the first cycle
  std::vector<RouteCheckResult> routes_after;  // with given routes, which make no cycle

  bool has_cycle() const { return now.cycle || (!after.empty() && after.back().check.cycle); }
};
std::string fabric_check_text(const topo::Graph& graph, const fabric::Routes& routes,
                              const FabricCheckResult& result);
// The keys of docs/formats/fabric_check.md, without the proof.
nlohmann::json fabric_check_json(const topo::Graph& graph, const fabric::Routes& routes,
                                 const FabricCheckResult& result);

// Whether traffic over a cycle of dependencies stops for good; nullopt: there is no cycle.
std::string deadlock_proof_text(const topo::Graph& graph,
                                const std::optional<Result<fabric::DeadlockWitness>>& proof);
nlohmann::json deadlock_proof_json(const topo::Graph& graph,
                                   const Result<fabric::DeadlockWitness>& witness);

// `regatta fabric simulate`: the keys of docs/formats/scenario.md.
nlohmann::json simulation_json(const simulate::Scenario& scenario,
                               const simulate::SimulatedNetwork& network,
                               const simulate::SimulationResult& outcome);
// `wall_time`: how long the simulation took on this machine.
std::string simulation_text(const simulate::Scenario& scenario,
                            const simulate::SimulatedNetwork& network,
                            const simulate::SimulationResult& outcome, Seconds wall_time);
// The file of --messages: CSV, a line for each message below the heading.
std::string message_csv_heading();
std::string message_csv_line(const simulate::Scenario& scenario,
                             const simulate::SimulatedNetwork& network,
                             const simulate::MessageRecord& message);
// An item of traffic that is the step of a job: its numbers come from the job's plan.
struct JobStepItem {
  std::string name;
  std::string job;
  std::string strategy;
  const simulate::SimulatedStep& step;
};
std::string job_step_text(const JobStepItem& item);

// `regatta fabric ports`: source ports of connections. The references outlive the call.

// How many connections share the fullest link between switches.
struct LinkSharing {
  std::vector<std::uint32_t> of_connection;  // of the links that each connection crosses
  std::uint32_t max = 0;                     // of all links
};
struct PortPlanReport {
  const topo::Graph& graph;
  const fabric::NicPairs& pairs;
  const fabric::PortPlan& ports;
  const LinkSharing& planned;
  const LinkSharing& by_chance;  // with the ports of `pairs`
};
std::string port_plan_text(const PortPlanReport& plan);
std::string port_plan_csv(const PortPlanReport& plan);
nlohmann::json port_plan_json(const PortPlanReport& plan);

// `regatta fabric watch`: one line for an alarm. `graph`: of the cluster, or nullptr.
std::string storm_alarm_text(const topo::Graph* graph, const fabric::PortStormAlarm& alarm);
nlohmann::json storm_alarm_json(const topo::Graph* graph, const fabric::PortStormAlarm& alarm);
// A device of this machine that cannot be read, or can be again.
struct WatchedDeviceChange {
  std::string device;
  std::string reason;  // why not; empty: it can be again
  Seconds at;
};
std::string watched_device_text(const WatchedDeviceChange& change);
nlohmann::json watched_device_json(const WatchedDeviceChange& change);
// The end of a watch.
struct StormWatchSummary {
  std::size_t ports = 0;
  std::size_t queues = 0;
  std::size_t storms = 0;  // that began
};
std::string storm_watch_text(const StormWatchSummary& summary);
nlohmann::json storm_watch_json(const StormWatchSummary& summary);

}  // namespace regatta::report
