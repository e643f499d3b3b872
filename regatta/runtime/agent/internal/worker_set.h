// agent/internal/worker_set.h: the worker processes of one server: starts them, carries their
// lines, notices every way in which they end or pause, and ends them.
#pragma once

#include <functional>
#include <memory>

namespace regatta::agent::proto {
class AgentEvent;
class SessionRequest;
}  // namespace regatta::agent::proto

namespace regatta::agent {

// One thread of its own does everything; it also sends a heartbeat each 0.5 s and the carrier
// changes of this server's interfaces. Each worker is its own process group and dies with this
// process.
class WorkerSet {
 public:
  // Called from the set's thread with every event; may block, which holds the workers' output back.
  using Sink = std::function<void(const proto::AgentEvent&)>;

  explicit WorkerSet(Sink sink);
  // Kills what still runs, at once.
  ~WorkerSet();
  WorkerSet(const WorkerSet&) = delete;
  WorkerSet& operator=(const WorkerSet&) = delete;

  // Hands over a Launch, Reply or Stop, from any thread; what comes of it is told by events.
  void submit(proto::SessionRequest request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::agent
