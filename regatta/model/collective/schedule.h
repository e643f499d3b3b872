// collective/schedule.h: a collective as data: the steps of one rank and their dependencies.
// Algorithms (algorithms.h) write schedules and use no socket; the engine runs them. Messages are
// matched by (sender, receiver, tag), so sender and receiver must use the same tag and size; a tag
// is used once for a pair and direction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "regatta/model/collective/reduce_kernels.h"

namespace regatta::collective {

enum class StepKind : std::uint8_t {
  kSend,           // src -> peer
  kReceive,        // peer -> dst
  kReceiveReduce,  // dst = src (op) the message of peer
  kReduce,         // dst = src (op) other
  kCopy,           // dst = src
  kCall,           // the function of add_call()
};

struct Step {
  StepKind kind = StepKind::kCopy;
  int peer = -1;  // rank in the communicator
  std::uint32_t tag = 0;
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  const std::byte* other = nullptr;
  std::size_t bytes = 0;
  bool finishes = false;  // the reduction of these elements ends here: averages divide
};

using StepIndex = std::uint32_t;
constexpr StepIndex kNoStep = std::numeric_limits<StepIndex>::max();

// Steps in an order that any later step may wait for any earlier one, so there are no cycles.
class CollectiveSchedule {
 public:
  Reduction reduction;

  // Adds a step that starts when all of `after` (earlier steps) have ended.
  StepIndex add(const Step& step, std::initializer_list<StepIndex> after = {});
  // Adds a step that calls `work`: pure computation on memory, of about a millisecond at most,
  // because messages do not move meanwhile, only between two such steps.
  StepIndex add_call(std::function<void()> work, std::initializer_list<StepIndex> after = {});
  // Adds one more condition to `step`.
  void wait_for(StepIndex step, StepIndex earlier);

  // Memory that lives as long as the schedule, 64-byte aligned. Where none is left, an address that
  // must not be read: the schedule must not run then.
  std::byte* scratch(std::size_t bytes);
  // The bytes that scratch() could not allocate; 0: it never failed.
  std::size_t lacked_bytes() const { return lacked_bytes_; }

  const std::vector<Step>& steps() const { return steps_; }
  // Calls the function of a kCall step.
  void call(StepIndex step) const { calls_[steps_[step].tag](); }
  // Pairs (earlier, later).
  const std::vector<std::pair<StepIndex, StepIndex>>& edges() const { return edges_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::vector<Step> steps_;
  std::vector<std::function<void()>> calls_;  // by the tag of their step
  std::vector<std::pair<StepIndex, StepIndex>> edges_;
  std::vector<std::unique_ptr<std::byte, Free>> scratch_;
  std::size_t lacked_bytes_ = 0;
};

}  // namespace regatta::collective
