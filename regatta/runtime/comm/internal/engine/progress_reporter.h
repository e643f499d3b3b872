// comm/internal/engine/progress_reporter.h: answers the query of a peer how far an operation is on
// this rank: whether it was called, runs or has ended, and what was called. Progress thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "regatta/runtime/comm/internal/engine/operation_executor.h"
#include "regatta/runtime/comm/internal/engine/stalled_call.h"
#include "regatta/runtime/comm/internal/shm/shm_world.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

// The role of the rank that queries: MessageKey::step of a query. Collectives
// through shared memory count on their own.
enum class QueryRole : std::uint32_t { kSends, kReceives, kShares };

// The name of an operation in queries.
MessageKey query_key(const StalledCall& stalled);
// The same number for an operation that runs here.
std::uint32_t query_number(const Operation& operation);

class ProgressReporter {
 public:
  // shm: null where the rank shares no memory. Both outlive this object.
  ProgressReporter(const OperationExecutor& executor, ShmWorld* shm)
      : executor_(executor), shm_(shm) {}

  // A communicator starts its first collective.
  void add_group(const std::shared_ptr<CommunicatorState>& group);
  // Where this rank is in the operation that `asker` names, and what else it does if it has not
  // called that.
  MemberReport report(int asker, const MessageKey& key) const;

 private:
  MemberReport report_operation(int asker, const MessageKey& key) const;
  void add_other_operation(MemberReport& report) const;

  const OperationExecutor& executor_;
  ShmWorld* const shm_;
  std::vector<std::weak_ptr<CommunicatorState>> groups_;
};

}  // namespace regatta::comm
