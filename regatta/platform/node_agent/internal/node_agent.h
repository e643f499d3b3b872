// node_agent/internal/node_agent.h: the agent at work: one thread waits for messages, ends of
// supervisors and the time, asks the core what follows, and does it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/platform/node_agent/agent_core.h"
#include "regatta/platform/node_agent/internal/controller_link.h"
#include "regatta/platform/node_agent/internal/device_meter.h"
#include "regatta/platform/node_agent/internal/journal_file.h"
#include "regatta/platform/node_agent/internal/lease_file.h"
#include "regatta/platform/node_agent/internal/log_service.h"
#include "regatta/platform/node_agent/internal/replica_runner.h"
#include "regatta/platform/node_agent/internal/run_folder.h"
#include "regatta/platform/node_protocol/controller_message.h"
#include "regatta/platform/node_protocol/node_message.h"

namespace regatta::node_agent {

struct NodeAgentOptions {
  RunnerOptions runner;
  sched::ClusterNode facts;
  std::string address;
  // The program that reads what real devices do; "": the devices are emulated, and what their
  // replicas use of the server counts.
  std::string device_reader;
  // Gets the metrics as text, once a second; empty: nobody asks for them.
  std::function<void(std::string text)> publish_metrics;
};

// For the certificate of the node; all may be empty.
struct CertificateRenewal {
  std::function<std::optional<std::string>()> due_request;  // a request (PEM) when one is due
  std::function<void(const std::string& certificate)> renewed;
};

class NodeAgent {
 public:
  // Reads the journal and finds the replicas of an earlier agent. kConflict where another agent has
  // this state folder; kInvalidInput where the journal is damaged.
  static Result<std::unique_ptr<NodeAgent>> create(NodeAgentOptions options,
                                                   std::unique_ptr<ControllerLink> link,
                                                   CertificateRenewal renewal);

  // Works until `stop_fd` is readable; the replicas go on. An error: the journal cannot be written,
  // so nothing may be started or forgotten.
  Status run(int stop_fd);

 private:
  // The files of its state folder.
  struct Files {
    RunLock lock;
    JournalFile journal;
    LeaseFile lease;
    ReplicaRunner runner;
  };
  NodeAgent(NodeAgentOptions options, Files files, std::unique_ptr<ControllerLink> link);
  Status adopt();
  Status handle_link();
  Status handle_message(const std::string& bytes);
  void take(const node_protocol::NodeWelcome& welcome);
  void renew_lease(std::int64_t sent_ns);
  void send_hello();
  void handle_ended();
  Status handle_time();
  void send_heartbeat(std::int64_t now);
  void measure_devices(std::int64_t now);
  std::string metrics_text(const node_protocol::DeviceReadings& readings) const;
  // Does what the core asks for, the journal first.
  Status carry_out();
  void start(const control::ReplicaOrder& order);
  int wait_ms(Seconds logs_due) const;
  void send(const node_protocol::NodeMessage& message);

  NodeAgentOptions options_;
  std::string boot_id_;
  RunLock lock_;
  JournalFile journal_;
  LeaseFile lease_;
  ReplicaRunner runner_;
  std::unique_ptr<ControllerLink> link_;
  CertificateRenewal renewal_;
  std::optional<AgentCore> core_;
  LogService logs_;
  ReplicaMeter replica_meter_;
  std::unique_ptr<DeviceReader> device_reader_;
  ReadingChanges reading_changes_;
  std::uint32_t failed_devices_ = 0;
  std::int64_t next_measure_ns_ = 0;
  bool is_open_ = false;     // a connection is
  bool is_welcome_ = false;  // and the controller knows this node
  std::int64_t heartbeat_ns_ = 1'000'000'000;
  std::int64_t next_heartbeat_ns_ = 0;
  std::int64_t latest_answer_ns_ = 0;  // when a message came
  std::int64_t sequence_ = 0;
  std::int64_t next_prune_ns_ = 0;
  std::string latest_problem_;  // of connecting, so that it is logged once
};

}  // namespace regatta::node_agent
