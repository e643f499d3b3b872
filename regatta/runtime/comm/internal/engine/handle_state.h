// comm/internal/engine/handle_state.h: the state of an operation that a Handle and the thread that
// moves its data share.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/communicator.h"

namespace regatta::comm {

// Moves the data of operations on the threads that wait for them.
class ProgressDriver {
 public:
  virtual ~ProgressDriver() = default;
  // Returns when the operation of `state` has ended.
  virtual void wait(Handle::State& state) = 0;
  // Moves what can be moved without waiting.
  virtual void poll() = 0;
};

struct Handle::State {
  ProgressDriver* driver = nullptr;  // lives until `done`; null: the progress thread moves the data
  std::atomic<double> started_s = 0;
  std::atomic<double> ended_s = 0;
  std::atomic<bool> done = false;
  std::optional<Error> error;  // written before `done`, constant after
  // A group of calls ends when all its parts have; constant, and then all above is unused.
  std::vector<std::shared_ptr<State>> parts;

  void finish(std::optional<Error> outcome, Seconds now) {
    ended_s.store(now.value, std::memory_order_relaxed);
    if (started_s.load(std::memory_order_relaxed) == 0)
      started_s.store(now.value, std::memory_order_relaxed);
    error = std::move(outcome);
    done.store(true, std::memory_order_release);
    done.notify_all();
  }
};

}  // namespace regatta::comm
