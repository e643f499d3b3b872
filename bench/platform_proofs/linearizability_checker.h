// platform_proofs/linearizability_checker.h: whether a history of concurrent operations on one
// object is that of operations which take effect one after the other, each between its call and its
// answer. Just-in-time linearization over configurations that are kept once each.
// Sources: Wing and Gong, Testing and verifying concurrent objects, JPDC 17, 1993; Lowe, Testing
// for linearizability, Concurrency and Computation 29(4), 2017.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace regatta::platform_proofs {

inline constexpr std::int64_t kNeverNs = std::numeric_limits<std::int64_t>::max();

// An operation in time, by one monotonic clock. Without an answer it may have taken effect at any
// moment up to `ended_ns`, or never.
template <typename Operation>
struct TimedOperation {
  std::int64_t called_ns = 0;
  std::int64_t ended_ns = kNeverNs;
  bool is_answered = false;
  Operation operation;
};

enum class HistoryVerdict {
  kLinearizable,
  kAnomaly,
  kTooWide  // too many operations at once, or too many configurations: not decided
};

struct HistoryReport {
  HistoryVerdict verdict = HistoryVerdict::kLinearizable;
  std::size_t operation = 0;       // whose answer nothing explains, or where the search gave up
  std::size_t configurations = 0;  // the most at any moment
};

// `Model` has the types State (ordered) and Operation (equality), and
//   static std::optional<State> apply(const State&, const Operation&, bool is_answered)
//   static bool is_without_effect(const Operation&)
// The first gives the state after the operation, or nothing where it cannot give its answer, or has
// no effect and no answer; the second says whether its kind or its answer excludes an effect. The
// time is linear in the history's length, and exponential in the number of operations at once at
// the worst.
template <typename Model>
class LinearizabilityChecker {
 public:
  using State = typename Model::State;
  using Timed = TimedOperation<typename Model::Operation>;

  LinearizabilityChecker(std::span<const Timed> history, State initial)
      : history_(history), configurations_{{0, std::move(initial)}} {}

  HistoryReport check() {
    HistoryReport report;
    for (const Event& event : events()) {
      report.operation = event.operation;
      if (event.is_call) {
        if (!open(event.operation)) return with(report, HistoryVerdict::kTooWide);
        continue;
      }
      close(event.operation);
      report.configurations = std::max(report.configurations, configurations_.size());
      if (configurations_.empty()) return with(report, HistoryVerdict::kAnomaly);
      if (configurations_.size() > kConfigurationsMax)
        return with(report, HistoryVerdict::kTooWide);
    }
    return report;
  }

 private:
  static constexpr std::size_t kSlots = 64;
  static constexpr std::size_t kConfigurationsMax = 200'000;

  struct Event {
    std::int64_t time_ns;
    bool is_call;
    std::size_t operation;
  };
  // The open operations that have taken effect, a bit for each slot, and the state after them.
  struct Configuration {
    std::uint64_t done;
    State state;
    auto operator<=>(const Configuration&) const = default;
  };
  struct Slot {
    bool is_open = false;
    std::size_t operation = 0;
  };

  static HistoryReport with(HistoryReport report, HistoryVerdict verdict) {
    report.verdict = verdict;
    return report;
  }

  // Calls before answers of the same moment: such operations count as concurrent.
  std::vector<Event> events() const {
    std::vector<Event> made;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      made.push_back({history_[i].called_ns, true, i});
      if (history_[i].is_answered || history_[i].ended_ns != kNeverNs)
        made.push_back({history_[i].ended_ns, false, i});
    }
    std::sort(made.begin(), made.end(), [](const Event& a, const Event& b) {
      if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
      return a.is_call != b.is_call ? a.is_call : a.operation < b.operation;
    });
    return made;
  }

  bool open(std::size_t operation) {
    for (Slot& slot : slots_) {
      if (slot.is_open) continue;
      slot = {true, operation};
      return true;
    }
    if (slots_.size() == kSlots) return false;
    slots_.push_back({true, operation});
    return true;
  }

  void close(std::size_t operation) {
    std::size_t slot = 0;
    while (!slots_[slot].is_open || slots_[slot].operation != operation)
      ++slot;
    const std::uint64_t bit = std::uint64_t{1} << slot;
    std::set<Configuration> next;
    seen_.clear();
    for (const Configuration& each : configurations_) {
      const bool is_done = (each.done & bit) != 0;
      if (is_done || !history_[operation].is_answered) next.insert({each.done & ~bit, each.state});
      // Without an answer this is the last moment at which it may take effect.
      if (!is_done) extend(each, bit, next);
    }
    slots_[slot].is_open = false;
    configurations_ = std::move(next);
  }

  // All ways to let open operations take effect, the one of `bit` as the last.
  void extend(Configuration from, std::uint64_t bit, std::set<Configuration>& next) {
    take_observations(from);
    if ((from.done & bit) != 0) {
      next.insert({from.done & ~bit, from.state});
      return;
    }
    if (!seen_.insert(from).second) return;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!may_take(from, slot)) continue;
      if (auto state = applied(from.state, slot))
        extend({from.done | std::uint64_t{1} << slot, std::move(*state)}, bit, next);
    }
  }

  // An answered operation without an effect that fits the state can take its place at once: later
  // it would exclude more, and never less. An operation that happens to change nothing now may be
  // what changes the state back later.
  void take_observations(Configuration& configuration) const {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!is_waiting(configuration, slot) || !timed(slot).is_answered ||
          !Model::is_without_effect(timed(slot).operation))
        continue;
      const auto state = applied(configuration.state, slot);
      if (state && *state == configuration.state) configuration.done |= std::uint64_t{1} << slot;
    }
  }

  // One of several equal operations without answers stands for all: that which ends first.
  bool may_take(const Configuration& configuration, std::size_t slot) const {
    if (!is_waiting(configuration, slot)) return false;
    if (timed(slot).is_answered) return true;
    for (std::size_t other = 0; other < slots_.size(); ++other) {
      if (other == slot || !is_waiting(configuration, other) || timed(other).is_answered ||
          !(timed(other).operation == timed(slot).operation))
        continue;
      if (std::pair(timed(other).ended_ns, other) < std::pair(timed(slot).ended_ns, slot))
        return false;
    }
    return true;
  }

  bool is_waiting(const Configuration& configuration, std::size_t slot) const {
    return slots_[slot].is_open && (configuration.done >> slot & 1) == 0;
  }
  const Timed& timed(std::size_t slot) const { return history_[slots_[slot].operation]; }
  std::optional<State> applied(const State& state, std::size_t slot) const {
    return Model::apply(state, timed(slot).operation, timed(slot).is_answered);
  }

  std::span<const Timed> history_;
  std::set<Configuration> configurations_;
  std::set<Configuration> seen_;
  std::vector<Slot> slots_;
};

}  // namespace regatta::platform_proofs
