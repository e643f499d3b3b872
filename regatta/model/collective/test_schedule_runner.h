// collective/test_schedule_runner.h: for tests: runs the schedules of all ranks in one
// thread, with messages that arrive at once, and counts what was sent. Steps are taken in a random
// order, so that a missing condition shows. With Delivery::kRendezvous a message leaves only when
// its receiver is ready, as large ones do, so that ranks that wait for each other show.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "regatta/model/collective/reduce_kernels.h"
#include "regatta/model/collective/schedule.h"

namespace regatta::collective {

enum class Delivery { kAtOnce, kRendezvous };

class ScheduleRunner {
 public:
  ScheduleRunner(const std::vector<CollectiveSchedule>& schedules, unsigned seed,
                 Delivery delivery = Delivery::kAtOnce)
      : schedules_(schedules), delivery_(delivery), random_(seed) {}

  // False when the ranks wait for each other for ever, or a message has the wrong size.
  bool run() {
    for (const CollectiveSchedule& schedule : schedules_) {
      const std::size_t count = schedule.steps().size();
      auto& rank = ranks_.emplace_back(Rank{std::vector<int>(count), std::vector<int>(count),
                                            std::vector<std::vector<StepIndex>>(count)});
      for (const auto& [earlier, later] : schedule.edges()) {
        ++rank.conditions[later];
        rank.dependents[earlier].push_back(later);
      }
      steps_left_ += count;
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto& steps = schedules_[rank].steps();
      for (StepIndex i = 0; i < steps.size(); ++i) {
        if (receives(steps[i]))
          receives_[{steps[i].peer, static_cast<int>(rank), steps[i].tag}] = {rank, i};
        if (ranks_[rank].conditions[i] == 0) ready_.emplace_back(rank, i);
      }
    }
    while (!ready_.empty())
      if (!take_any()) break;
    return steps_left_ == 0 && messages_.empty();
  }

  // Bytes that `from` sent to `to`.
  std::size_t sent(int from, int to) const {
    const auto found = sent_.find({from, to});
    return found == sent_.end() ? 0 : found->second;
  }

  // Messages one after the other that the last step waited for.
  int rounds() const { return rounds_; }

 private:
  struct Rank {
    std::vector<int> conditions;       // by step
    std::vector<int> messages_before;  // by step: the longest chain that it waited for
    std::vector<std::vector<StepIndex>> dependents;
  };
  struct Message {
    std::vector<std::byte> bytes;
    int messages_before = 0;
  };
  using Key = std::tuple<int, int, std::uint32_t>;  // from, to, tag

  bool can_leave(std::size_t rank, const Step& step) const {
    if (delivery_ == Delivery::kAtOnce) return true;
    const auto receive = receives_.find({static_cast<int>(rank), step.peer, step.tag});
    if (receive == receives_.end()) return false;
    return ranks_[receive->second.first].conditions[receive->second.second] == 0;
  }

  static bool receives(const Step& step) {
    return step.kind == StepKind::kReceive || step.kind == StepKind::kReceiveReduce;
  }

  // One of the steps whose conditions hold and whose message is there; false when there is none.
  bool take_any() {
    const std::size_t first = random_() % ready_.size();
    for (std::size_t i = 0; i < ready_.size(); ++i) {
      auto& choice = ready_[(first + i) % ready_.size()];
      const auto [rank, index] = choice;
      const Step& step = schedules_[rank].steps()[index];
      if (receives(step) && messages_.count({step.peer, static_cast<int>(rank), step.tag}) == 0)
        continue;
      if (step.kind == StepKind::kSend && !can_leave(rank, step)) continue;
      choice = ready_.back();
      ready_.pop_back();
      return take(rank, index);
    }
    return false;
  }

  bool take(std::size_t rank, StepIndex index) {
    const Step& step = schedules_[rank].steps()[index];
    const auto me = static_cast<int>(rank);
    const Reduction& reduction = schedules_[rank].reduction;
    int& before = ranks_[rank].messages_before[index];
    if (step.kind == StepKind::kSend) {
      messages_[{me, step.peer, step.tag}] = {{step.src, step.src + step.bytes}, before};
      sent_[{me, step.peer}] += step.bytes;
    } else if (receives(step)) {
      const Message message = messages_.extract({step.peer, me, step.tag}).mapped();
      if (message.bytes.size() != step.bytes) return false;
      before = std::max(before, message.messages_before + 1);
      if (step.kind == StepKind::kReceiveReduce)
        combine(reduction, step.dst, step.src, message.bytes.data(), step.bytes);
      else if (step.bytes > 0)
        std::memcpy(step.dst, message.bytes.data(), step.bytes);
    } else if (step.kind == StepKind::kReduce) {
      combine(reduction, step.dst, step.src, step.other, step.bytes);
    } else if (step.kind == StepKind::kCall) {
      schedules_[rank].call(index);
    } else if (step.bytes > 0) {
      std::memmove(step.dst, step.src, step.bytes);
    }
    if (step.finishes) finish(reduction, step.dst, step.bytes);
    --steps_left_;
    rounds_ = std::max(rounds_, before);
    for (const StepIndex later : ranks_[rank].dependents[index]) {
      int& later_before = ranks_[rank].messages_before[later];
      later_before = std::max(later_before, before);
      if (--ranks_[rank].conditions[later] == 0) ready_.emplace_back(rank, later);
    }
    return true;
  }

  const std::vector<CollectiveSchedule>& schedules_;
  const Delivery delivery_;
  std::mt19937 random_;
  std::vector<Rank> ranks_;
  std::vector<std::pair<std::size_t, StepIndex>> ready_;  // conditions hold: rank and step
  std::size_t steps_left_ = 0;
  std::map<Key, std::pair<std::size_t, StepIndex>> receives_;  // the rank and step that gets it
  std::map<Key, Message> messages_;
  int rounds_ = 0;
  std::map<std::pair<int, int>, std::size_t> sent_;
};

}  // namespace regatta::collective
