// fault_simulation/internal/simulated_world.h: the parts of a simulation: virtual time, the store's
// content, servers with their processes, and the client.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/control/cluster_controller.h"
#include "regatta/platform/fault_simulation/fault_simulation.h"
#include "regatta/platform/node_agent/agent_core.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::fault_simulation {

// Events in the order of their times; those of one time in the order in which they were added.
class EventQueue {
 public:
  void add(Seconds time, std::function<void()> work);
  bool is_empty() const { return events_.empty(); }
  Seconds now() const { return now_; }
  std::int64_t count() const { return count_; }
  void run_next();

 private:
  struct Event {
    Seconds time;
    std::int64_t number = 0;
    std::function<void()> work;
    bool operator<(const Event& other) const {  // the top of a std::priority_queue is the largest
      return time.value != other.time.value ? time > other.time : number > other.number;
    }
  };
  std::priority_queue<Event> events_;
  Seconds now_;
  std::int64_t count_ = 0;
};

// The processes of a replica on a server.
struct SimulatedProcess {
  std::uint32_t devices = 0;
  int run = 0;  // distinguishes ends of earlier processes
  Seconds lease;
};

struct SimulatedNode {
  std::string name;
  std::optional<node_agent::AgentCore> agent;  // none: it was killed and has not restarted
  std::vector<node_agent::JournalEntry> journal;
  std::map<control::ReplicaKey, SimulatedProcess> processes;
  std::map<control::ReplicaKey, int> exits;  // status files of processes that ended
  std::optional<Seconds> last_contact;       // a file that outlives the agent, but no boot
  Seconds kept_until;                        // beside it
  bool is_connected = false;
  // Reachable and without replicas: only the sweep's time matters, until wake().
  bool is_quiet = false;
  int number = -1;  // at the controller that it is connected to
  int session = 0;  // messages of earlier connections are dropped
  Seconds partitioned_until;
  Seconds last_to_node;  // deliveries of one connection keep their order
  Seconds last_to_controller;
};

struct SimulatedController {
  std::optional<control::ClusterController> core;  // none: it was killed and has not restarted
  int incarnation = 0;
  control::Revision durable = 0;
  control::Effects uncommitted;  // gathered while a commit is under way
  control::Effects committing;
  bool is_committing = false;
  bool needs_decision = false;
  bool is_deciding = false;
};

struct StoredRecord {
  control::Revision revision = 0;
  std::string value;
};

class SimulatedWorld {
 public:
  SimulatedWorld(const FaultSimulationOptions& options, const sched::SchedulingPolicy& policy);
  Result<FaultSimulationResult> run();

 private:
  // The controller's process (simulated_controller.cc).
  void start_controller();
  void kill_controller();
  void restart_controller();
  void flush_controller();
  void commit_next();
  void decide_if_needed();
  void send_orders(int node, const std::vector<control::ReplicaOrder>& orders);
  // Servers (simulated_nodes.cc).
  void connect(int node);
  void cut(int node);
  void start_agent(int node);
  void kill_agent(int node);
  void reboot(int node);
  void act(int node);
  void wake(SimulatedNode& node);
  void enforce_leases(int node);
  void watch_leases(int node);
  void start_process(int node, const control::ReplicaOrder& order);
  void end_process(int node, const control::ReplicaKey& key, int run, int status);
  void send_reports(int node, std::vector<control::ReplicaReport> reports, bool is_complete);
  void sweep();
  // The client and the faults (simulated_world.cc).
  void submit(int job);
  void draw_faults();
  bool is_settled() const;
  std::string left_text() const;
  Status check_end() const;

  void fail(const std::string& rule);
  control::Moment moment() const;
  double exponential(double mean);
  bool is_reachable(const SimulatedNode& node) const;

  FaultSimulationOptions options_;
  sched::SchedulingPolicy policy_;
  packing::RandomSequence random_;
  EventQueue events_;
  Seconds last_sweep_;
  Seconds next_decision_;
  SimulatedController controller_;
  std::map<std::string, StoredRecord> store_;
  control::Revision stored_revision_ = 0;
  std::vector<SimulatedNode> nodes_;
  std::map<std::string, int> node_numbers_;
  std::map<int, control::JobId> acknowledged_;            // by the client's number
  std::map<control::ReplicaKey, int> starts_;             // of all time
  std::map<control::JobId, std::map<int, int>> running_;  // processes by attempt
  std::vector<std::string> specs_;
  FaultSimulationResult result_;
  std::optional<Error> error_;
};

}  // namespace regatta::fault_simulation
