// agent/session.h: starts worker processes on the servers of a cluster through one agent per
// server, forwards their events, and ends them all on failure or request. Used by `run` and
// `measure`. The session starts the agents of emulated servers (those without an address) inside
// the lab and connects to the agents of real ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/network/lab/lab.h"

namespace regatta::agent {

struct WorkerLaunch {
  topo::DeviceRef device;
  std::string program = "regatta-worker";  // found beside the agent's own executable
  std::vector<std::string> arguments;      // "train", "measure"
  // Sent as the first line; the session adds "rank", "world_size", "rank_names", "server",
  // "address" (of the device's NIC), "device_index", "compute_cgroup" ("": none), "cpu_share" (0:
  // unlimited), "job_token".
  std::shared_ptr<const nlohmann::json> spec;
};

// Source ports for the connections between the ranks of a run, once their endpoints are known.
struct PeerPorts {
  // The ports of rank `from`: by rank that it connects to, one a connection; empty: any.
  std::function<std::vector<std::vector<std::uint16_t>>(std::size_t from)> of_rank;
  int paths_per_peer = 1;  // paths of the connections from one rank to another, at most
};
// Null: any ports. An error ends the run.
using RankPortPlanner = std::function<Result<PeerPorts>(const std::vector<std::string>& endpoints)>;

struct SessionOptions {
  bool keep_lab = false;  // keep a lab that this session brought up
};

class Session {
 public:
  // Finds the cluster's lab or brings it up (then the session owns it), starts or connects to every
  // agent.
  static Result<Session> open(const topo::Cluster& cluster, const SessionOptions& options);
  ~Session();  // ends workers, its own agents, its own lab
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const std::optional<lab::LabInfo>& lab() const;

  // Runs one worker per entry (rank = index) to its end. `on_event` gets every event but the
  // endpoint ones, from one thread. Set `stop` true from a signal handler to end everything early
  // (kUnavailable, "stopped on request"). Within 10 s of a detected fault, all workers are ended
  // and the error names the root cause (failure_cause.h). These faults are detected: a worker or an
  // agent that ends (1 s), a cable of the lab on a NIC that the run uses (3 s without carrier), a
  // server without heartbeat (4 s), a paused worker (4.6 s), a rank that its peers cannot reach
  // (8 s), ranks that do not join (120 s). A rank that lives and hangs is not: its agent has a
  // heartbeat, its peers reach it, and nothing limits the progress of its work (docs/errors.md).
  // Every run calls `plan_ports` once, when all ranks have joined.
  Status run(const std::vector<WorkerLaunch>& workers,
             const std::function<void(Rank, const nlohmann::json&)>& on_event,
             const std::atomic<bool>& stop, const RankPortPlanner& plan_ports = {});

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::agent
