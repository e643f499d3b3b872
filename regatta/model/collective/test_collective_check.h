// collective/test_collective_check.h: for tests: an algorithm on all ranks, any number
// of them, beside what it must give: in place and out of place, with small and odd counts, whatever
// the order of the steps, with messages that wait for their receivers and with such that do not.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/internal/group_position.h"
#include "regatta/model/collective/test_schedule_runner.h"

namespace regatta::collective {

using TrialValues = std::vector<std::int32_t>;
using Build = std::function<void(CollectiveSchedule&, const GroupPosition&, const Buffers&)>;
using BuildWithRoot =
    std::function<void(CollectiveSchedule&, const GroupPosition&, const Buffers&, int root)>;

inline const std::vector<int> kRankCounts = {2, 3, 4, 5, 6, 7, 8, 9, 16};
inline const std::vector<std::size_t> kElementCounts = {1, 2, 7, 64, 1001};

// The input of rank `rank` at `i`: small enough that sums of all ranks are exact.
inline std::int32_t value_of(int rank, std::size_t i) {
  return static_cast<std::int32_t>(i % 977) * 13 + rank * 10007;
}
// As a float whose sums depend on their order.
inline std::int32_t float_of(int rank, std::size_t i) {
  return std::bit_cast<std::int32_t>(1.0F / static_cast<float>(value_of(rank, i) + 3));
}

struct CollectiveTrial {
  int ranks = 2;
  std::size_t count = 1;  // of the call
  std::size_t in_count = 1;
  std::size_t out_count = 1;
  // Where `in` and `out` begin in the memory of the rank, in elements.
  std::function<std::size_t(int rank)> in_at;
  std::function<std::size_t(int rank)> out_at;
  Reduction reduction = {};
  std::int32_t (*fill)(int rank, std::size_t i) = value_of;
};

struct TrialOutcome {
  bool ended = false;
  std::vector<TrialValues> out;  // by rank
  std::vector<std::vector<std::size_t>> sent;
  int rounds = 0;

  std::size_t sent_by(int rank) const {
    std::size_t sum = 0;
    for (const std::size_t bytes : sent[as_index(rank)])
      sum += bytes;
    return sum;
  }
};

inline TrialOutcome run_trial(const CollectiveTrial& trial, const Build& build, unsigned seed,
                              Delivery delivery) {
  const auto ranks = static_cast<std::size_t>(trial.ranks);
  std::vector<CollectiveSchedule> schedules(ranks);
  std::vector<TrialValues> memory;
  for (int rank = 0; rank < trial.ranks; ++rank) {
    const std::size_t in_at = trial.in_at(rank);
    const std::size_t out_at = trial.out_at(rank);
    TrialValues& mine =
        memory.emplace_back(std::max(in_at + trial.in_count, out_at + trial.out_count), -1);
    for (std::size_t i = 0; i < trial.in_count; ++i)
      mine[in_at + i] = trial.fill(rank, i);
    CollectiveSchedule& schedule = schedules[as_index(rank)];
    schedule.reduction = trial.reduction;
    schedule.reduction.divisor = trial.ranks;
    build(schedule, {rank, trial.ranks},
          {reinterpret_cast<const std::byte*>(mine.data() + in_at),
           reinterpret_cast<std::byte*>(mine.data() + out_at), trial.count, 4});
  }
  ScheduleRunner runner(schedules, seed, delivery);
  TrialOutcome outcome;
  outcome.ended = runner.run();
  outcome.rounds = runner.rounds();
  for (int rank = 0; rank < trial.ranks; ++rank) {
    const TrialValues& mine = memory[as_index(rank)];
    const auto first = mine.begin() + static_cast<std::ptrdiff_t>(trial.out_at(rank));
    outcome.out.emplace_back(first, first + static_cast<std::ptrdiff_t>(trial.out_count));
    auto& sent = outcome.sent.emplace_back(ranks);
    for (int to = 0; to < trial.ranks; ++to)
      sent[as_index(to)] = runner.sent(rank, to);
  }
  return outcome;
}

// Runs the trial with both deliveries and compares: `expected` of rank and place in the output.
inline void expect_outcome(const CollectiveTrial& trial, const Build& build,
                           const std::function<std::int32_t(int, std::size_t)>& expected,
                           const std::vector<int>& who = {}) {
  unsigned seed = 1;
  for (const Delivery delivery : {Delivery::kAtOnce, Delivery::kRendezvous, Delivery::kAtOnce}) {
    const TrialOutcome outcome = run_trial(trial, build, ++seed, delivery);
    const std::string what = std::to_string(trial.ranks) + " ranks, count " +
                             std::to_string(trial.count) + ", in at " +
                             std::to_string(trial.in_at(0)) + ", out at " +
                             std::to_string(trial.out_at(0)) + ", seed " + std::to_string(seed);
    ASSERT_TRUE(outcome.ended) << what;
    for (int rank = 0; rank < trial.ranks; ++rank) {
      if (!who.empty() && std::find(who.begin(), who.end(), rank) == who.end()) continue;
      for (std::size_t i = 0; i < trial.out_count; ++i)
        ASSERT_EQ(outcome.out[as_index(rank)][i], expected(rank, i))
            << what << ", rank " << rank << ", element " << i;
    }
  }
}

inline std::size_t at_start(int) {
  return 0;
}
inline std::function<std::size_t(int)> after(std::size_t elements) {
  return [elements](int) { return elements; };
}
inline std::function<std::size_t(int)> at_part(std::size_t count) {
  return [count](int rank) { return count * static_cast<std::size_t>(rank); };
}

inline std::int32_t sum_of(int ranks, std::size_t i) {
  std::int32_t sum = 0;
  for (int rank = 0; rank < ranks; ++rank)
    sum += value_of(rank, i);
  return sum;
}

inline constexpr Reduction kSum = {DataType::kI32, ReduceOp::kSum, 1};
inline constexpr Reduction kAverage = {DataType::kI32, ReduceOp::kAverage, 1};

inline void expect_all_reduce(const Build& build) {
  for (const int ranks : kRankCounts)
    for (const std::size_t count : kElementCounts) {
      for (const bool in_place : {false, true})
        expect_outcome({ranks, count, count, count, at_start, after(in_place ? 0 : count), kSum},
                       build, [&](int, std::size_t i) { return sum_of(ranks, i); });
      expect_outcome({ranks, count, count, count, at_start, at_start, kAverage}, build,
                     [&](int, std::size_t i) { return sum_of(ranks, i) / ranks; });
      // The same bits on every rank and in every run.
      const CollectiveTrial floats{
          ranks,   count, count, count, at_start, after(count), {DataType::kF32, ReduceOp::kSum, 1},
          float_of};
      const TrialValues bits = run_trial(floats, build, 1, Delivery::kAtOnce).out[0];
      expect_outcome(floats, build, [&](int, std::size_t i) { return bits[i]; });
    }
}

inline void expect_reduce_scatter(const Build& build) {
  for (const int ranks : kRankCounts)
    for (const std::size_t count : kElementCounts) {
      const std::size_t all = count * static_cast<std::size_t>(ranks);
      for (const auto& out_at : {after(all), after(0), at_part(count), after(all - count)})
        expect_outcome({ranks, count, all, count, at_start, out_at, kSum}, build,
                       [&](int rank, std::size_t i) {
                         return sum_of(ranks, count * static_cast<std::size_t>(rank) + i);
                       });
      expect_outcome({ranks, count, all, count, at_start, after(all), kAverage}, build,
                     [&](int rank, std::size_t i) {
                       return sum_of(ranks, count * static_cast<std::size_t>(rank) + i) / ranks;
                     });
    }
}

inline void expect_all_gather(const Build& build) {
  for (const int ranks : kRankCounts)
    for (const std::size_t count : kElementCounts) {
      const std::size_t all = count * static_cast<std::size_t>(ranks);
      for (const auto& in_at : {after(all), after(0), at_part(count), after(all - count)})
        expect_outcome({ranks, count, count, all, in_at, at_start}, build, [&](int, std::size_t i) {
          return value_of(static_cast<int>(i / count), i % count);
        });
    }
}

inline void expect_all_to_all(const Build& build,
                              const std::vector<int>& rank_counts = kRankCounts) {
  for (const int ranks : rank_counts)
    for (const std::size_t count : kElementCounts) {
      const std::size_t all = count * static_cast<std::size_t>(ranks);
      for (const bool in_place : {false, true})
        expect_outcome({ranks, count, all, all, at_start, after(in_place ? 0 : all)}, build,
                       [&](int rank, std::size_t i) {
                         const std::size_t part = count * static_cast<std::size_t>(rank);
                         return value_of(static_cast<int>(i / count), part + i % count);
                       });
    }
}

// From every third root.
inline void expect_broadcast(const BuildWithRoot& build) {
  for (const int ranks : kRankCounts)
    for (const std::size_t count : kElementCounts)
      for (int root = 0; root < ranks; root += 3)
        expect_outcome(
            {ranks, count, count, count, at_start, at_start},
            [&](CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers) {
              build(schedule, self, buffers, root);
            },
            [&](int, std::size_t i) { return value_of(root, i); });
}

inline void expect_reduce(const BuildWithRoot& build) {
  for (const int ranks : kRankCounts)
    for (const std::size_t count : kElementCounts)
      for (int root = 0; root < ranks; root += 3)
        for (const bool in_place : {false, true})
          expect_outcome(
              {ranks, count, count, count, at_start, after(in_place ? 0 : count), kSum},
              [&](CollectiveSchedule& schedule, const GroupPosition& self, const Buffers& buffers) {
                build(schedule, self, buffers, root);
              },
              [&](int, std::size_t i) { return sum_of(ranks, i); }, {root});
}

// One run out of place, for its bytes and rounds.
inline TrialOutcome measure(int ranks, std::size_t count, std::size_t in_count,
                            std::size_t out_count, const Build& build) {
  return run_trial({ranks, count, in_count, out_count, at_start, after(in_count), kSum}, build, 1,
                   Delivery::kAtOnce);
}

}  // namespace regatta::collective
