// agent/internal/worker_set.h: the worker processes of one server: starts them, forwards their
// lines, reports when they end or pause, and ends them.
#pragma once

#include <functional>
#include <memory>

namespace regatta::agent::proto {
class AgentEvent;
class SessionRequest;
}  // namespace regatta::agent::proto

namespace regatta::agent {

// One thread does all the work; it also sends a heartbeat every 0.5 s and the carrier changes of
// this server's interfaces. Each worker is a process group of its own and dies with this process.
class WorkerSet {
 public:
  // Called from the set's thread with every event; while it blocks, the output of workers waits.
  using Sink = std::function<void(const proto::AgentEvent&)>;

  explicit WorkerSet(Sink sink);
  // Kills all workers at once.
  ~WorkerSet();
  WorkerSet(const WorkerSet&) = delete;
  WorkerSet& operator=(const WorkerSet&) = delete;

  // Hands over a Launch, Reply or Stop, from any thread; events report its results.
  void submit(proto::SessionRequest request);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::agent
