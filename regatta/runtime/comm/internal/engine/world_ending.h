// comm/internal/engine/world_ending.h: ends a world, with its first error or in order. After an
// error the peers get it before the callers of this rank do: a caller may exit at once, and its
// closed connections would look like the cause to the others. Progress thread only.
#pragma once

#include <optional>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/close_sequence.h"
#include "regatta/runtime/comm/internal/engine/link_set.h"
#include "regatta/runtime/comm/internal/engine/membership.h"
#include "regatta/runtime/comm/internal/engine/operation_executor.h"
#include "regatta/runtime/comm/internal/engine/operation_inbox.h"
#include "regatta/runtime/comm/internal/engine/peer_liveness.h"
#include "regatta/runtime/comm/internal/engine/watch_publisher.h"
#include "regatta/runtime/comm/internal/shm/shm_world.h"

namespace regatta::comm {

// All references and pointers outlive the ending.
struct WorldEndingSetup {
  std::string name;  // of the rank
  LinkSet& links;
  ShmWorld* shm = nullptr;  // null: the rank shares no memory
  const Membership& membership;
  const PeerLiveness& peers;
  OperationInbox& inbox;
  OperationExecutor& executor;
  WatchPublisher& publisher;
};

class WorldEnding {
 public:
  explicit WorldEnding(WorldEndingSetup setup) : setup_(std::move(setup)) {}

  // The world has failed; only the first error counts. Links forget the messages of this rank.
  void fail(const Error& error);
  bool has_failed() const { return failure_.has_value(); }
  // The operations of this rank have ended with the error.
  bool has_ended_operations() const { return failure_ && failure_->is_announced; }
  // The error of one communicator of this server ends the others and the other ranks too.
  void fail_with_shared_error();

  // The world ends in order: its operations may go on until `deadline`.
  void begin_close(Seconds deadline) { close_.begin(deadline); }
  // The progress thread must not sleep for long.
  bool is_under_way() const { return close_.has_begun() || is_announcing(); }

  // After fail(): ends the operations once the peers have the error or had their time.
  void announce(Seconds now);
  // After begin_close(): goes on with the orderly end; true when it is complete.
  bool close(Seconds now);

 private:
  struct Failure {
    Error error;
    Seconds announce_until;
    bool is_announced = false;
  };

  bool is_announcing() const { return failure_ && !failure_->is_announced; }
  bool is_flushed() const;
  void end_operations(Seconds now);

  const WorldEndingSetup setup_;
  std::optional<Failure> failure_;
  CloseSequence close_;
};

}  // namespace regatta::comm
