// comm/internal/engine/operation.h: an operation (a collective, a send or a receive) and the
// communicator that it belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regatta/model/collective/call.h"
#include "regatta/model/collective/schedule.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/engine/handle_state.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {

struct Operation;
class AlgorithmSelector;

// This bit marks the numbers of timing exchanges (algorithm_selector.h), which count separately
// from the calls.
inline constexpr std::uint32_t kTimingExchangeNumber = 0x40000000U;

// One message of an operation, in or out. `peer` is a rank of the world.
struct MessageTransfer {
  Operation* operation = nullptr;
  StepIndex step = 0;
  int peer = -1;
  OutMessage out;            // of a send; a receive sets `key`, `bytes` and `call` only
  std::size_t expected = 0;  // of a receive: bytes of the fragments that came or are coming
  std::size_t received = 0;
  bool is_active = false;   // posted, and not ended
  bool is_granted = false;  // moves by permission of the receiver, not on credit
  int reminders = 0;        // calls of repeat_requests() while it waits for a grant

  const MessageKey& key() const { return out.key; }
  std::size_t bytes() const { return out.bytes; }
};

// The part of a communicator that the progress thread uses. `id`, `rank`, `members` and `log` are
// constant; the progress thread alone touches the rest.
struct CommunicatorState {
  std::uint64_t id = 0;
  int rank = 0;
  std::vector<int> members;       // world ranks, by rank of the communicator
  std::shared_ptr<GroupLog> log;  // null: not watched

  std::deque<std::unique_ptr<Operation>> waiting;  // collectives
  std::vector<std::unique_ptr<Operation>> active;
  bool runs_collective = false;
  std::uint32_t collectives_started = 0;
  std::shared_ptr<AlgorithmSelector> algorithm_selector;  // of the collectives over the network
};

// The collectives of a communicator run one after the other; sends and receives start at once and
// run beside all others.
struct Operation {
  std::shared_ptr<CommunicatorState> group;
  std::shared_ptr<Handle::State> handle;
  std::string name;          // "all_reduce of 4 MiB"
  std::uint32_t number = 0;  // within the communicator (collectives) or pair (send, receive)
  std::uint64_t code = 0;    // encode_call() or encode_transfer(); a timing exchange: of its call
  std::uint64_t bytes = 0;   // of the call; a timing exchange: of its call
  bool is_collective = true;
  bool is_timing_exchange = false;
  bool is_logged = true;     // false: the log of the communicator has another writer
  std::uint32_t before = 0;  // of a timing exchange: the number of its call, which it precedes
  std::optional<Call> call;  // of a collective whose schedule is written when it starts
  CollectiveSchedule schedule;
  int connections = 0;  // its messages are striped over so many; 0: all

  // Set by prepare().
  std::vector<MessageTransfer> transfers;      // by step
  std::vector<std::uint32_t> conditions;       // by step: how many steps must end before it
  std::vector<std::uint32_t> dependents_from;  // by step: its first index in `dependents`
  std::vector<StepIndex> dependents;
  std::size_t steps_left = 0;

  Seconds begun_at;
  Seconds progressed_at;  // a byte moved or a step was computed last

  std::uint32_t call_number() const { return is_timing_exchange ? before : number; }
  // Null: not watched.
  GroupLog* log() const { return is_logged ? group->log.get() : nullptr; }
  // Its entry in the log of the communicator.
  LoggedCall logged() const;

  // Builds the tables from the schedule.
  void prepare();

  // A byte moved. The first one counts as the start of the operation for its Handle: a receive that
  // was posted early starts when its peer sends.
  void record_progress(Seconds now) {
    progressed_at = now;
    if (handle->started_s.load() == 0) handle->started_s.store(now.value);
  }
};

}  // namespace regatta::comm
