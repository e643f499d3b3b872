// sched/internal/forecast_runs.h: the running jobs of a forecast: their ends, what they hold, and
// who makes room.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/internal/forecast_input.h"

namespace regatta::sched {

// The input, the usage and the random sequence outlive it.
class ForecastRuns {
 public:
  using Places = std::vector<ForecastPlace>;

  ForecastRuns(const ForecastInput& input, QuotaUsage& usage, packing::RandomSequence& random);

  // The next drawn end; infinite where none is known.
  double next_end() const;
  void end_until(double now);

  // Chooses the nodes anew that the policy keeps free: none of the free ones is taken before the
  // next call.
  void keep_spares();

  // The job runs on these places, which are free, from `now` on.
  void start(const ForecastJob& job, const ForecastVariant& variant, const Places& places,
             double now);

  // Where jobs of the shape would run: beside the reservation, or on all that is free.
  std::optional<Places> find_place(int shape, bool beside_reservation);
  // Whether a job that is expected to end then leaves the reservation alone.
  bool passes_reservation(double end) const;

  bool has_reservation() const { return reserved_.has_value(); }
  // The place and the start of the job once enough runs have ended as expected.
  void reserve(const ForecastJob& job, double now);
  void drop_reservation();
  // When the job would start if runs end as expected; infinite where that does not suffice.
  double expected_start(const ForecastJob& job, double now);

  // Makes room for the job in this shape by evictions, as far as the policy allows them; the
  // evicted jobs, as they wait then.
  std::optional<std::vector<ForecastJob>> evict_for(const ForecastJob& job, int shape, double now);
  // Makes room by moving runs elsewhere, where that loses less than waiting.
  bool move_for(const ForecastJob& job, int shape, double now);

 private:
  struct Run {
    Places places;
    ForecastJob job;  // as it was when it began
    ForecastVariant held;
    double started = 0;
    double begun = 0;  // in this future: `elapsed` of the job holds until then
    double expected_end = 0;
    bool has_ended = false;
    bool is_healed_by_spares = false;
  };
  struct Reservation {
    double start = 0;
    Places places;
  };
  struct Room {
    std::vector<int> runs;
    double loss = 0;  // device-seconds
  };

  void add_run(ForecastRun run, double begun);
  void end_run(int run);
  void set_spares(std::vector<int> spares);
  void count_large(const Run& run, int change);
  void take(const Places& places);
  void give(const Places& places);
  void refresh_beside(int node);
  double elapsed_at(const Run& run, double now) const;
  double since_checkpoint(const Run& run, double now) const;
  double loss_of(const Run& run, double now) const;
  bool may_evict(const ForecastJob& job, const Run& run, double now) const;
  void renew_expected_ends(double now);
  std::pair<double, std::optional<Places>> place_after_ends(const ForecastJob& job, double now);
  using Candidates = std::vector<std::pair<double, int>>;  // loss and run, rising
  std::optional<Room> room_on(int node, const ResourceAmounts& amounts, ResourceAmounts free,
                              const Candidates& candidates) const;
  std::optional<Room> room_below(const ForecastShape& shape, int domain,
                                 const std::vector<Candidates>& candidates) const;
  std::optional<Room> find_room(int shape, double now,
                                const std::function<bool(const Run&)>& may_go) const;

  const ForecastInput& input_;
  QuotaUsage& usage_;
  packing::RandomSequence& random_;
  ForecastCluster::Free free_;                // spares have kKeptFree less
  ForecastCluster::Free beside_;              // the reservation
  std::vector<ResourceAmounts> reserved_on_;  // by node
  std::optional<Reservation> reserved_;
  std::vector<int> spares_;
  std::map<std::string, int> large_;  // runs that spares heal, by device type
  std::vector<Run> runs_;
  std::vector<std::vector<int>> runs_on_;      // by node
  std::set<std::pair<double, int>> expected_;  // ends
  using End = std::pair<double, int>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace regatta::sched
