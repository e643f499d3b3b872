#include "regatta/bench/timing.h"

#include <algorithm>

#include "regatta/bench/own_ranks.h"
#include "regatta/bench/peers.h"

namespace regatta::bench {
namespace {

Status add_round(std::vector<Contender>& all, std::size_t first,
                 Result<std::vector<Contender>> round) {
  if (!round) return round.error();
  for (std::size_t i = 0; i < round->size(); ++i) {
    if (all.size() <= first + i)
      all.push_back(std::move((*round)[i]));
    else
      append(all[first + i], (*round)[i]);
  }
  return {};
}

}  // namespace

Seconds Timing::median() const {
  std::vector<double> sorted = batches_s;
  std::sort(sorted.begin(), sorted.end());
  return {sorted[sorted.size() / 2]};
}

Seconds Timing::least() const {
  return {*std::min_element(batches_s.begin(), batches_s.end())};
}

Seconds Timing::largest() const {
  return {*std::max_element(batches_s.begin(), batches_s.end())};
}

void append(Contender& all, const Contender& round) {
  for (std::size_t size = 0; size < all.timings.size(); ++size) {
    auto& batches = all.timings[size].batches_s;
    const Timing& added = round.timings[size];
    batches.insert(batches.end(), added.batches_s.begin(), added.batches_s.end());
    all.timings[size].wrong += added.wrong;
  }
}

Result<std::vector<Contender>> race(const Task& task, const RaceOptions& options,
                                    void (*on_turn)(int round, const std::string& name)) {
  std::vector<Contender> all;
  for (const std::string& peer : options.peers)
    REGATTA_TRY_DO(find_peer(peer));
  for (int round = 0; round < options.rounds; ++round) {
    on_turn(round, "regatta");
    REGATTA_TRY_DO(add_round(all, 0, run_own_ranks(task)));
    for (std::size_t i = 0; i < options.peers.size(); ++i) {
      on_turn(round, options.peers[i]);
      auto timed = run_peer(options.peers[i], task);
      if (!timed) return timed.error();
      REGATTA_TRY_DO(add_round(all, 2 + i, std::vector<Contender>{std::move(*timed)}));
    }
  }
  return all;
}

}  // namespace regatta::bench
