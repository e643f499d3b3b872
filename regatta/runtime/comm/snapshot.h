// comm/snapshot.h: one moment of what a rank shows (internal/watch/layout.h), as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/watch/layout.h"

namespace regatta::comm {

// Times: CLOCK_MONOTONIC of the rank's machine.
struct OperationView {
  Lane lane = Lane::kCollective;
  std::uint64_t sequence = 0;  // of the collective in its communicator, from 1
  std::uint64_t call = 0;      // as describe_call() takes it
  std::uint64_t bytes = 0;
  std::uint64_t moved = 0;  // bytes of the call that are through
  Seconds started;
  Seconds progressed;  // of one that ended: when
  OperationStatus status = OperationStatus::kNone;
  std::optional<Code> error;
};

struct GroupView {
  std::uint64_t id = 0;
  int rank = 0;              // in the communicator
  std::vector<int> members;  // world ranks
  std::uint64_t submitted = 0;
  std::uint64_t ended = 0;
  OperationView collective;  // the last that was begun
  OperationView transfer;
};

struct FlightView {
  std::uint64_t number = 0;  // counts the operations of the rank
  std::uint64_t group = 0;
  OperationView operation;
};

struct PeerView {
  std::string name;
  std::uint64_t sent_bytes = 0;
  bool has_departed = false;
};

struct RankView {
  pid_t pid = 0;    // as the reader sees it; 0: from a file
  char state = 0;   // of the process, as in proc(5); 0: not known
  std::string job;  // its name; empty: it has none
  std::string server;
  std::uint32_t token_hash = 0;
  std::uint64_t world = 0;  // the same on all ranks of a world
  int rank = 0;
  Seconds started;
  Seconds ticked;  // its progress thread looked round last
  std::vector<PeerView> peers;
  std::vector<GroupView> groups;
  std::vector<FlightView> flights;  // the last operations that ended, oldest first
  std::string verdict;              // who an operation that stands still waits for
  Seconds judged;                   // when that was written; 0: not known
  std::string error;                // what the world failed with

  int world_size() const { return static_cast<int>(peers.size()); }
  const std::string& name() const { return peers[static_cast<std::size_t>(rank)].name; }
};

RankView read_view(const WatchMap& map);

// All worlds of a process, from its watch files. kNotFound: there is no such process;
// kInvalidInput: it is in no world of regatta; kUnsupported: it may not be looked at.
Result<std::vector<RankView>> inspect_process(pid_t pid, const std::string& proc = "/proc");

// The ranks on this machine whose job has that name, by world and rank; of all jobs
// when it is empty. Processes that may not be looked at are passed over.
std::vector<RankView> inspect_job(const std::string& job, const std::string& proc = "/proc");

}  // namespace regatta::comm
