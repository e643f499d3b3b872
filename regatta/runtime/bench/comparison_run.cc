#include "regatta/runtime/bench/comparison_run.h"

#include <cstddef>
#include <utility>

#include "regatta/runtime/bench/peers.h"

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

Result<ComparisonResult> run_comparison(
    const BenchTask& task, const ComparisonOptions& options,
    const std::function<void(int, const std::string&)>& on_turn) {
  ComparisonResult outcome;
  std::vector<Contender>& all = outcome.contenders;
  std::size_t own = 0;  // how many of them are Regatta's
  for (const std::string& peer : options.peers)
    REGATTA_TRY_DO(find_peer(peer));
  for (int round = 0; round < options.rounds; ++round) {
    if (options.stop != nullptr && *options.stop) {
      if (round > 0) break;
      return Error{Code::kUnavailable, "stopped before the first round"};
    }
    on_turn(round, "regatta");
    auto own_run = run_regatta_ranks(task, options.environment);
    if (!own_run) return own_run.error();
    REGATTA_TRY_DO(add_round(all, 0, std::move(own_run->contenders)));
    outcome.choices = std::move(own_run->choices);
    if (round == 0) own = all.size();
    for (std::size_t i = 0; i < options.peers.size(); ++i) {
      on_turn(round, options.peers[i]);
      auto timed = run_peer(options.peers[i], task);
      if (!timed) return timed.error();
      REGATTA_TRY_DO(add_round(all, own + i, std::vector<Contender>{std::move(*timed)}));
    }
  }
  return outcome;
}

}  // namespace regatta::bench
