// rpc/worker_channel.h: the channel between a worker process (one rank) and the agent that started
// it: one JSON object a line, events to standard output, replies from standard input.
// Events: {"event":"endpoint","text":...} answered by {"peers":[...]}, with planned source ports
// also "ports" and "ways"; {"event":"step",...}, {"event":"spans",...},
// {"event":"error","code":...,"message":...}, {"event":"done",...}. See rpc/README.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"

namespace regatta::rpc {

// Writes events whole, also from several threads; one thread at a time receives. Standard output
// belongs to the channel: nothing else may print there.
class WorkerChannel {
 public:
  // Takes over file descriptors 0 and 1; from then on printf goes to standard error and reading
  // standard input meets its end. Ignores SIGPIPE in the whole process, so that a lost agent is an
  // error of emit() and no sudden end.
  static Result<WorkerChannel> open();
  // The same over two open descriptors, which it then owns: for tests.
  static WorkerChannel over(int input_fd, int output_fd);
  WorkerChannel(WorkerChannel&&) noexcept;
  WorkerChannel& operator=(WorkerChannel&&) noexcept;
  ~WorkerChannel();

  // The first line of standard input: the spec of this worker. kUnavailable when the agent closed
  // the channel, kInvalidInput when the line is no JSON object.
  Result<nlohmann::json> receive_spec();
  // Sends this rank's endpoint text, waits for all ranks' texts in rank order: a comm::Exchange.
  // Waits as long as the agent lives: the session ends a job whose ranks do not all send theirs.
  Result<std::vector<std::string>> exchange(const std::string& mine);
  // The source ports of the connections to each rank that came with the texts; no ranks when they
  // were not planned.
  struct PlannedPorts {
    std::vector<std::vector<std::uint16_t>> to_rank;  // empty: this rank chooses
    int ways = 1;  // the most paths that the connections to one rank take
  };
  const PlannedPorts& planned_ports() const;
  // Writes one event; kUnavailable when the agent is gone.
  Status emit(const nlohmann::json& event);
  // {"event":"error","code":"timeout","message":...}: the last event of a worker that failed.
  Status emit_error(const Error& error);

 private:
  struct Impl;
  explicit WorkerChannel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// "invalid_input", "not_found", "conflict", "exhausted", "unavailable", "timeout", "unsupported".
std::string to_string(Code code);

// The error that an "error" event carries; an unknown code reads as kUnavailable.
Error error_of_event(const nlohmann::json& event);

}  // namespace regatta::rpc
