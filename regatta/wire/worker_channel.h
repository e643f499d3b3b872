// wire/worker_channel.h: how a worker process (one rank) talks to the agent that started it:
// one JSON object a line, events to standard output, replies from standard input.
// Events: {"event":"endpoint","text":...} answered by {"peers":[...]}; {"event":"step",...},
// {"event":"spans",...}, {"event":"error","code":...,"message":...}, {"event":"done",...}. See
// wire/README.md.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/core/result.h"

namespace regatta::wire {

// Writes events whole, also from several threads. Standard output belongs to the channel: nothing
// else may print there.
class WorkerChannel {
 public:
  // Takes over file descriptors 0 and 1; from then on printf goes to standard error.
  static Result<WorkerChannel> open();
  WorkerChannel(WorkerChannel&&) noexcept;
  WorkerChannel& operator=(WorkerChannel&&) noexcept;
  ~WorkerChannel();

  // The first line of standard input: what this worker is to do.
  Result<nlohmann::json> receive_spec();
  // Sends this rank's endpoint text, waits for all ranks' texts in rank order: a coll::Exchange.
  Result<std::vector<std::string>> exchange(const std::string& mine);
  Status emit(const nlohmann::json& event);
  Status emit_error(const Error& error);

 private:
  struct Impl;
  explicit WorkerChannel(Impl* impl);
  Impl* impl_ = nullptr;
};

}  // namespace regatta::wire
