// sched/internal/start_pass.h: the step of a decision in which pending jobs start.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "regatta/platform/sched/internal/decision_state.h"
#include "regatta/platform/sched/internal/job_shapes.h"
#include "regatta/platform/sched/internal/pending_order.h"
#include "regatta/platform/sched/internal/slice_placement.h"

namespace regatta::sched {

inline constexpr int kRoomSearchesMax = 32;  // of one decision, for jobs beyond guarantees
inline constexpr int kOwedRoomSearchesMax = 256;

// Jobs within guarantees first, then all in the order of their queues; those before which there is
// no room keep a reservation. The state outlives it.
class StartPass {
 public:
  explicit StartPass(DecisionState& state);

  void run();
  // start_jobs_before().
  void run_before(const RunningJob& service);

 private:
  struct Waiting {
    int pending = 0;
    WaitCause cause = WaitCause::kNoRoom;
    int behind = -1;  // kReservation: the pending job that it would delay, where one alone is known
  };

  void start_owed(const PendingOrder& order);
  std::vector<Waiting> start_in(PendingOrder order);
  bool goes_before_service(int pending);
  bool is_below_guarantee(int leaf) const;
  bool is_behind(int pending, std::vector<int>& ahead);
  bool fits_now(int pending);
  int account_of(int pending) const {
    return state_.accounts.at(&at(state_.queue.jobs, pending).request);
  }
  int leaf_of(int pending) const { return state_.usage.leaf_of(account_of(pending)); }
  bool is_started(int pending) const { return !at(state_.started, pending).empty(); }
  // Nothing: the job starts.
  std::optional<WaitCause> try_start(int pending);
  // The same on the device types that `job`, its request, names.
  std::optional<WaitCause> try_start_as(int pending, const JobRequest& job, bool may_make_room);
  // The pending job's request, or this on one device type.
  std::optional<GangPlacement> place(int pending, const JobRequest& job, const FreeCapacity& free);
  std::optional<GangPlacement> find_room(int pending, const JobRequest& request, std::string& text);
  // The free devices beside so many of the reservations, for a pending job.
  struct StartView {
    const FreeCapacity& free;
    int reservations = 0;
    int pending = 0;
  };
  // Jobs that need little of a device look for shared ones first; the others go there before
  // anybody is evicted for them. `text` is the end of the reason.
  std::optional<GangPlacement> place_free_or_mixed(const JobRequest& job, const StartView& view,
                                                   int shape, std::string& text);
  std::optional<GangPlacement> mix(const JobRequest& job, const StartView& view, int shape,
                                   bool is_shared_only);
  // The shape of the pending job's request, or of this on one device type, with its kinds of duty
  // where it may share devices.
  int shape_of(int pending, const JobRequest& job);
  // The amounts of its smallest size.
  const ResourceAmounts& wanted(const JobRequest& job, int shape);
  bool has_failed(int view, int shape) const;
  void set_failed(int view, int shape);
  void start(int pending, std::vector<ReplicaPlacement> replicas, const std::string& room);
  // Room within a guarantee that jobs hold which started in this decision: they wait instead.
  std::optional<GangPlacement> withdraw_for(int pending, const JobRequest& job, std::string& text);
  struct OwnStart {
    int pending = 0;
    QuotaClaim claim;
  };
  std::vector<OwnStart> starts_to_withdraw(const QuotaClaim& claim) const;
  std::optional<GangPlacement> withdraw_among(std::span<const OwnStart> starts,
                                              const QuotaClaim& claim, const GangRequest& gang,
                                              FreeCapacity& free, std::string& text);
  void give_start(FreeCapacity& free, int pending) const;
  void take_start(FreeCapacity& free, int pending) const;
  QuotaClaim claim_of(int pending, const JobRequest& job);
  void withdraw(int pending);
  void add_withdrawn(std::vector<Waiting>& waiting);
  void reserve(int pending);
  void use_what_victims_left(std::vector<Waiting>& waiting);
  void add_waiting(const Waiting& waiting);
  const FreeCapacity& view_for(int pending, int& view);
  // How far above its leaf the queue is that is guaranteed what the job takes; -1: none is.
  int owed_distance(int pending);
  int owed_distance_as(int pending, const JobRequest& job);
  bool start_owed_within(const PendingOrder& order, int distance);
  bool fits_empty_cluster(const JobRequest& job, int shape);
  bool fits_on_spares(int pending);

  DecisionState& state_;
  SlicePlacement slices_;
  JobShapes shapes_;
  std::vector<int> shape_of_;                            // by pending job; -1: not known yet
  std::vector<std::optional<ResourceAmounts>> amounts_;  // by shape
  std::map<int, std::string> unfit_reasons_;             // by shape
  // views_[i]: what is free beside the first i reservations; the first is state_.free.
  std::vector<FreeCapacity> views_;
  std::vector<std::vector<char>> failed_;  // by view and shape: such jobs did not fit
  // View and shape of jobs that no device admits; true: none that others use.
  std::set<std::tuple<int, int, bool>> failed_mixes_;
  // Was evicted, priority, level of service, shape, leaf: these decide who makes room.
  using RoomKey = std::tuple<bool, int, int, int, int>;
  std::set<RoomKey> failed_rooms_;     // of gangs for which nobody makes room
  std::optional<FreeCapacity> empty_;  // the cluster without any job
  ClusterSnapshot repaired_nodes_;     // all ready
  std::optional<FreeCapacity> repaired_;
  std::vector<std::optional<bool>> fits_empty_;  // by shape
  std::map<int, bool> fits_spares_;              // the same
  int room_searches_left_ = kRoomSearchesMax;
  int owed_room_searches_left_ = kOwedRoomSearchesMax;
  int starts_ = 0;
  std::vector<int> started_free_;    // jobs that started into free devices, in this order
  std::vector<char> was_withdrawn_;  // by pending job
  std::vector<int> withdrawn_;       // since add_withdrawn()
  int starts_of_owed_ = 0;           // when the jobs within guarantees were last considered
  bool has_made_room_ = false;
  const RunningJob* service_ = nullptr;  // only jobs that go before it start
  bool is_service_owed_ = false;         // one more replica
  // At most so far above its leaf is the queue that is guaranteed what a job takes; -1: anything.
  int owed_distance_max_ = -1;
};

}  // namespace regatta::sched
