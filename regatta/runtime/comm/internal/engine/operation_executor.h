// comm/internal/engine/operation_executor.h: starts the operations of the communicators in order
// and runs the steps of their schedules. Progress thread only.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/engine/message_matcher.h"
#include "regatta/runtime/comm/internal/engine/operation.h"

namespace regatta::comm {

class OperationExecutor {
 public:
  explicit OperationExecutor(MessageMatcher& matcher) : matcher_(matcher) {}

  // A collective starts when the ones before it in its communicator have ended, others at once.
  void submit(std::unique_ptr<Operation> operation, Seconds now);
  // Continues the operations whose transfers have ended, and makes one of the calls that are ready;
  // true when there was any.
  bool advance(Seconds now);
  // Ends all operations with the error.
  void fail_all(const Error& error, Seconds now);

  // Set when memory for a schedule was lacking: its operation cannot run, so the world must fail.
  const std::optional<Error>& error() const { return error_; }

  bool is_idle() const { return groups_.empty(); }
  // The communicators with operations that wait or run.
  const std::vector<std::shared_ptr<CommunicatorState>>& groups() const { return groups_; }

 private:
  void start_next(CommunicatorState& group, Seconds now);
  void start(std::unique_ptr<Operation> started, Seconds now);
  void run_ready(Operation& operation);
  void continue_after(Operation& operation, StepIndex step, Seconds now);
  void end_step(Operation& operation, StepIndex step);
  void run_step(Operation& operation, StepIndex step);
  void end_operation(Operation& operation, Seconds now);
  void drop_idle_groups();

  MessageMatcher& matcher_;
  std::vector<std::shared_ptr<CommunicatorState>> groups_;
  std::vector<StepIndex> ready_;
  // Steps of the kind kCall that may run; each of an operation that has not ended.
  struct ReadyCall {
    Operation* operation;
    StepIndex step;
  };
  std::deque<ReadyCall> calls_;
  std::optional<Error> error_;
};

// The world ranks that the operation waits for, in order: for a message or a grant of theirs.
std::vector<int> waited_for(const Operation& operation);

}  // namespace regatta::comm
