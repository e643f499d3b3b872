// probe/internal/poll_schedule.h: which connections are queried when, and by which of the two
// methods of flow_counters.h, so that little is asked and no more than 16 KiB stays unseen. Pure:
// the caller says what time it is, what interfaces carried, and what queries found and cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/probe/flow_counters.h"

namespace regatta::probe {

enum class Poll {
  kNothing,     // what moved is too little
  kMovers,      // those that moved a moment ago, and the others if has_unexplained_bytes() then
  kAll,         // each known connection, but for most of the quiet ones
  kDump,        // all of the machine
  kAllAndDump,  // to find new ones, and so that both costs are known
};

class PollSchedule {
 public:
  // The first poll finds new connections.
  PollSchedule(const CounterOptions& options, Seconds now);

  // Whether the poll of `now` looks for new connections.
  bool is_dump_due(Seconds now) const;
  // Bytes since the last call, given the total of the interfaces. One that went took its count
  // along: it may have carried much.
  std::uint64_t carried_since(std::uint64_t total);
  // The poll of `now`; `carried` since the last one by the interfaces, nothing where these cannot
  // be queried.
  Poll next(Seconds now, std::optional<std::uint64_t> carried);

  // The connections to query, as places in `known`. For Poll::kAll: of the quiet ones, others each
  // time.
  std::vector<std::size_t> choose_all(std::span<const ConnectionCounters> known, Seconds now);
  // For Poll::kMovers.
  std::vector<std::size_t> choose_movers(std::span<const ConnectionCounters> known,
                                         Seconds now) const;
  // Those that were not queried at `now`.
  static std::vector<std::size_t> choose_others(std::span<const ConnectionCounters> known,
                                                Seconds now);

  // Whether the interfaces carried more than the `found` bytes of the movers account for.
  bool has_unexplained_bytes(std::uint64_t found);
  // After all were queried for Poll::kAllAndDump, with the bytes that they moved: whether the
  // interfaces report too late to be used any longer.
  bool are_interfaces_late(std::uint64_t found);

  // A query found new bytes.
  void note_move(std::uint64_t cookie, Seconds now);
  // A dump changed what is `known` to `fresh`.
  void note_dump(std::span<const ConnectionCounters> known,
                 std::span<const ConnectionCounters> fresh);
  void set_dump_cost(Seconds cost) { dump_cost_ = cost; }
  void set_query_cost(Seconds cost) { query_cost_ = cost; }

 private:
  bool is_quiet(const ConnectionCounters& one, Seconds now) const;

  const Seconds look_for_new_;
  const Seconds quiet_after_;
  const std::size_t quiet_share_;
  Seconds last_look_;                                 // for new connections
  Seconds dump_cost_;                                 // of the last dump
  Seconds query_cost_;                                // of the last queries for all
  std::unordered_map<std::uint64_t, Seconds> moved_;  // when a byte was seen last, by cookie
  Seconds woken_;                                     // when a quiet connection moved again
  std::size_t rounds_ = 0;
  std::uint64_t carried_ = 0;      // by the interfaces, at the last look
  std::uint64_t unexplained_ = 0;  // of it by no connection that was asked
  std::uint64_t reported_ = 0;     // by interfaces, and unexplained before all were queried
  int lateness_ = 0;  // dumps in a row that found much of which interfaces told nothing
};

}  // namespace regatta::probe
