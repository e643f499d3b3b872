// coll/algorithm/schedule_runner_test.h: for tests: runs the schedules of all ranks in one thread,
// with messages that arrive at once, and counts what was sent. Steps are taken in a random order,
// so that a missing condition shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "regatta/coll/reduce_kernels.h"
#include "regatta/coll/schedule.h"

namespace regatta::coll {

class ScheduleRunner {
 public:
  ScheduleRunner(const std::vector<Schedule>& schedules, unsigned seed)
      : schedules_(schedules), random_(seed) {}

  // False when the ranks wait for each other for ever, or a message has the wrong size.
  bool run() {
    for (const Schedule& schedule : schedules_) {
      auto& rank = ranks_.emplace_back();
      rank.conditions.resize(schedule.steps().size());
      rank.ended.resize(schedule.steps().size());
      for (const auto& [earlier, later] : schedule.edges())
        ++rank.conditions[later];
    }
    while (true) {
      std::vector<std::pair<std::size_t, StepIndex>> ready = find_ready();
      if (ready.empty()) return has_ended();
      const auto [rank, step] = ready[random_() % ready.size()];
      if (!take(rank, step)) return false;
    }
  }

  // Bytes that `from` sent to `to`.
  std::size_t sent(int from, int to) const {
    const auto found = sent_.find({from, to});
    return found == sent_.end() ? 0 : found->second;
  }

 private:
  struct Rank {
    std::vector<int> conditions;  // by step
    std::vector<bool> ended;      // by step
  };
  using Key = std::tuple<int, int, std::uint32_t>;  // from, to, tag

  static bool receives(const Step& step) {
    return step.kind == StepKind::kReceive || step.kind == StepKind::kReceiveReduce;
  }

  std::vector<std::pair<std::size_t, StepIndex>> find_ready() const {
    std::vector<std::pair<std::size_t, StepIndex>> ready;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& steps = schedules_[rank].steps();
      for (StepIndex i = 0; i < steps.size(); ++i) {
        if (ranks_[rank].ended[i] || ranks_[rank].conditions[i] > 0) continue;
        const Key key{steps[i].peer, static_cast<int>(rank), steps[i].tag};
        if (receives(steps[i]) && messages_.count(key) == 0) continue;
        ready.emplace_back(rank, i);
      }
    }
    return ready;
  }

  bool take(std::size_t rank, StepIndex index) {
    const Step& step = schedules_[rank].steps()[index];
    const auto me = static_cast<int>(rank);
    const Reduction& reduction = schedules_[rank].reduction;
    if (step.kind == StepKind::kSend) {
      messages_[{me, step.peer, step.tag}].assign(step.src, step.src + step.bytes);
      sent_[{me, step.peer}] += step.bytes;
    } else if (receives(step)) {
      const auto message = messages_.extract({step.peer, me, step.tag}).mapped();
      if (message.size() != step.bytes) return false;
      if (step.kind == StepKind::kReceive)
        std::memcpy(step.dst, message.data(), step.bytes);
      else
        combine(reduction, step.dst, step.src, message.data(), step.bytes);
    } else if (step.kind == StepKind::kReduce) {
      combine(reduction, step.dst, step.src, step.other, step.bytes);
    } else if (step.bytes > 0) {
      std::memmove(step.dst, step.src, step.bytes);
    }
    if (step.finishes) finish(reduction, step.dst, step.bytes);
    ranks_[rank].ended[index] = true;
    for (const auto& [earlier, later] : schedules_[rank].edges())
      if (earlier == index) --ranks_[rank].conditions[later];
    return true;
  }

  bool has_ended() const {
    for (const Rank& rank : ranks_)
      for (const bool ended : rank.ended)
        if (!ended) return false;
    return messages_.empty();
  }

  const std::vector<Schedule>& schedules_;
  std::mt19937 random_;
  std::vector<Rank> ranks_;
  std::map<Key, std::vector<std::byte>> messages_;
  std::map<std::pair<int, int>, std::size_t> sent_;
};

}  // namespace regatta::coll
