// link_rates/internal/train_schedule.h: which train goes when: no two share a link or a server, no
// link carries more than its share of trains, and none starts over a link that has other traffic.
// Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/link_rates/internal/train.h"
#include "regatta/network/link_rates/rate_plan.h"

namespace regatta::link_rates {

struct TrainScheduleOptions {
  double share = 0.05;  // of a link's time that trains may take, at most
  int trains = 3;       // that must arrive over each path
  int tries = 9;        // sent over a path at most
  std::size_t together = 1;
};

class TrainSchedule {
 public:
  TrainSchedule(const topo::Graph& graph, TrainScheduleOptions options);

  // Paths to measure, in this order. Returns the number of the first one.
  std::size_t add(std::span<const TrainPath> paths);
  std::size_t paths() const { return paths_.size(); }
  const TrainPath& path(std::size_t number) const { return paths_[number].path; }
  TrainShape shape(std::size_t number) const;

  // The next path that may be used, if any; it is in use from now on. `busy` by directed link: has
  // other traffic.
  std::optional<std::size_t> start_next(Seconds now, const std::vector<bool>& busy);
  // The train over it is over. `rate`: how fast it arrived; none: it did not, or was disturbed.
  void finish(std::size_t number, std::optional<BytesPerSecond> rate, Seconds now);
  // Other traffic was found where the last train over the path went.
  void discard_last(std::size_t number);

  // No further train is needed over a path, because its rate is explained.
  void settle(std::size_t number);
  // Trains that were sent over each path that needs more, at least, those over busy links left out.
  // No path gets another train before all have as many.
  int rounds(const std::vector<bool>& busy) const;

  // Nothing is left to start or to wait for.
  bool is_done() const;
  std::size_t arrived() const { return arrived_; }
  std::size_t finished() const;  // paths
  // Rates of the trains that have arrived.
  const std::vector<BytesPerSecond>& rates(std::size_t number) const {
    return paths_[number].rates;
  }

 private:
  struct State {
    TrainPath path;
    int sent = 0;
    bool is_in_use = false;
    bool is_settled = false;
    std::vector<BytesPerSecond> rates;
    double work = 0;  // seconds that the busiest of its links has to wait for all of its trains
  };
  bool is_finished(const State& state) const;
  bool is_idle(const State& state, const std::vector<bool>& busy) const;
  bool is_before(std::size_t one, std::size_t other) const;
  void wait(std::size_t number);
  bool may_start(const State& state, Seconds now, const std::vector<bool>& busy) const;
  void charge(const State& state, std::optional<BytesPerSecond> rate, Seconds now);

  const topo::Graph& graph_;
  const TrainScheduleOptions options_;
  std::vector<State> paths_;
  // Those with fewer trains first, and then those over the links that have most to do, so that no
  // link is left for the end.
  std::deque<std::size_t> waiting_;
  std::set<std::size_t> in_use_;  // paths
  std::size_t arrived_ = 0;
  std::vector<bool> link_in_use_;  // by directed link
  std::vector<bool> node_in_use_;  // by NodeId: servers
  std::vector<Seconds> free_at_;   // by directed link
};

}  // namespace regatta::link_rates
