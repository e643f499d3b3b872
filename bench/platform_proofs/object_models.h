// platform_proofs/object_models.h: what the API promises of one job, and of the intents of all
// nodes, as models of the checker of linearizability. Source: docs/formats/api.md.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace regatta::platform_proofs {

enum class JobAction : std::uint8_t { kCreate, kRead, kSetPriority, kHold, kRelease, kCancel };

enum class JobAnswer : std::uint8_t {
  kDone,     // with what the job is after it
  kStale,    // 412
  kConflict  // 409: the job is over
};

struct JobFields {
  std::int64_t id = 0;
  std::int64_t revision = 0;
  std::int32_t priority = 0;
  bool is_held = false;
  bool is_cancelled = false;
  auto operator<=>(const JobFields&) const = default;
};

struct JobOperation {
  JobAction action = JobAction::kRead;
  JobAnswer answer = JobAnswer::kDone;
  std::int32_t priority = 0;  // of kCreate and kSetPriority
  std::int64_t expected = 0;  // If-Match of kSetPriority
  JobFields seen;             // of kDone
  bool operator==(const JobOperation&) const = default;
};

// A job as its clients know it: it is made by the first request with its idempotency key, held. It
// never starts, for it wants more devices than there are.
struct JobModel {
  struct State {
    bool exists = false;
    // Its revision is higher than that of `fields`, after a change without an answer.
    bool is_revision_open = false;
    JobFields fields;  // id 0: it is not known yet
    auto operator<=>(const State&) const = default;
  };
  using Operation = JobOperation;

  static std::optional<State> apply(const State& before, const JobOperation& operation,
                                    bool is_answered) {
    State state = before;
    JobAnswer answer = JobAnswer::kDone;
    if (!act(state, operation, answer, is_answered)) return std::nullopt;
    if (!is_answered) return state == before ? std::nullopt : std::optional(state);
    if (answer != operation.answer) return std::nullopt;
    if (answer != JobAnswer::kDone) return state;
    return see(state, operation.seen) ? std::optional(state) : std::nullopt;
  }
  static bool is_without_effect(const JobOperation& operation) {
    return operation.action == JobAction::kRead || operation.answer != JobAnswer::kDone;
  }

 private:
  // While a job waits, the scheduler writes why: its revision rises without a request.
  static bool is_rising(const State& state) {
    return !state.fields.is_held && !state.fields.is_cancelled;
  }

  // False where the state forbids the operation altogether.
  static bool act(State& state, const JobOperation& operation, JobAnswer& answer,
                  bool is_answered) {
    if (operation.action == JobAction::kCreate) {
      if (!state.exists) {
        state.fields = {.priority = operation.priority, .is_held = true};
        state.exists = state.is_revision_open = true;
      }
      return true;
    }
    if (!state.exists) return false;
    const bool is_over = state.fields.is_cancelled;
    switch (operation.action) {
      case JobAction::kSetPriority:
        return set_priority(state, operation, answer, is_answered);
      case JobAction::kHold:
      case JobAction::kRelease:
        if (is_over) answer = JobAnswer::kConflict;
        if (is_over || state.fields.is_held == (operation.action == JobAction::kHold)) return true;
        state.fields.is_held = !state.fields.is_held;
        state.is_revision_open = true;
        return true;
      case JobAction::kCancel:
        state.is_revision_open |= !is_over;
        state.fields.is_cancelled = true;
        return true;
      default:
        return true;
    }
  }

  static bool set_priority(State& state, const JobOperation& operation, JobAnswer& answer,
                           bool is_answered) {
    const std::int64_t revision = state.fields.revision;
    const bool may_be_later = state.is_revision_open || is_rising(state);
    const bool may_match = state.is_revision_open ? operation.expected > revision
                           : may_be_later         ? operation.expected >= revision
                                                  : operation.expected == revision;
    if (is_answered && operation.answer == JobAnswer::kStale) {
      answer = JobAnswer::kStale;
      return may_be_later || !may_match;
    }
    if (!may_match) return false;
    state.fields.revision = operation.expected;
    state.is_revision_open = false;
    if (state.fields.is_cancelled) {
      answer = JobAnswer::kConflict;
      return true;
    }
    state.fields.priority = operation.priority;
    state.is_revision_open = true;
    return true;
  }

  static bool see(State& state, const JobFields& seen) {
    const std::int64_t revision = state.fields.revision;
    const bool fits = state.is_revision_open ? seen.revision > revision
                      : is_rising(state)     ? seen.revision >= revision
                                             : seen.revision == revision;
    if (!fits || (state.fields.id != 0 && state.fields.id != seen.id)) return false;
    state.fields.id = seen.id;
    state.fields.revision = seen.revision;
    state.is_revision_open = false;
    return state.fields == seen;
  }
};

inline constexpr std::size_t kIntentNodes = 2;

struct IntentOperation {
  enum class Action : std::uint8_t { kSet, kRead, kReadAll };
  Action action = Action::kRead;
  std::uint8_t node = 0;
  std::array<std::uint8_t, kIntentNodes> intents{};  // that was set or seen; of one node: the first
  bool operator==(const IntentOperation&) const = default;
};

// The intents of all nodes together: a list of nodes is one moment's.
struct IntentModel {
  using State = std::array<std::uint8_t, kIntentNodes>;
  using Operation = IntentOperation;

  static std::optional<State> apply(const State& before, const IntentOperation& operation,
                                    bool is_answered) {
    State state = before;
    if (operation.action == IntentOperation::Action::kSet) {
      state[operation.node] = operation.intents[0];
      return is_answered || state != before ? std::optional(state) : std::nullopt;
    }
    const bool fits = operation.action == IntentOperation::Action::kReadAll
                          ? operation.intents == state
                          : operation.intents[0] == state[operation.node];
    return fits && is_answered ? std::optional(state) : std::nullopt;
  }
  static bool is_without_effect(const IntentOperation& operation) {
    return operation.action != IntentOperation::Action::kSet;
  }
};

}  // namespace regatta::platform_proofs
