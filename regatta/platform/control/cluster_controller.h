// control/cluster_controller.h: the controller as a state machine: requests of users, reports of
// agents and decisions of the scheduler go in; changes for the store and orders for agents come
// out. It reads no clock and does no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/control/cluster_tables.h"
#include "regatta/platform/control/job_spec.h"
#include "regatta/platform/control/node.h"
#include "regatta/platform/store/store.h"

namespace regatta::control {

// The moment of an event. Decisions use the monotonic clock alone.
struct Moment {
  Seconds now;               // monotonic; rises from call to call
  std::int64_t unix_ms = 0;  // for people
};

struct ControllerOptions {
  // A node that is not heard for so long counts as failed: three heartbeats and a half.
  Seconds silent_after{3.5};
  // An agent that hears nothing ends a replica after this time, by a clock that runs while the
  // machine sleeps; a queue may have a lease of its own. The controller waits a quarter longer
  // before it calls the replica lost: so much may the two clocks differ in rate.
  Seconds lease{30};
  // A controller that ends in good order lets agents keep their replicas for so long
  // (node_protocol::LeaseExtension), so the next one waits for at least this lease for nodes of
  // which no heartbeat has come yet.
  Seconds restart_lease{30};
  std::size_t jobs_max = 1'000'000;
  // Jobs that are over leave after this time, or when more are over, the oldest first: by the
  // monotonic clock, so a restart of the controller begins anew. The history keeps them.
  Seconds ended_kept{7 * 86400};
  std::size_t ended_most = 500'000;
  Seconds once_kept{86400};  // how long a repeated request gets the first answer
};

inline constexpr Seconds kFabricFaultLasts{15};

// To be committed in one transaction, in this order. Orders for `nodes` (cluster_tables.h indices)
// may have changed, and are sent once the changes are durable.
struct Effects {
  std::vector<store::Change> changes;
  std::vector<int> nodes;
  bool needs_decision = false;
  bool is_urgent = false;  // jobs have lost their nodes: it need not wait for its turn
};

struct Submission {
  std::string_view spec;  // JSON, docs/formats/submitted_job.md
  std::string_view user;  // who asks; the spec's own `user` is refused unless it is the same
};

struct ControllerState;

class ClusterController {
 public:
  ClusterController(ControllerOptions options, ClusterTables tables);

  ClusterController(ClusterController&&) noexcept;
  ClusterController& operator=(ClusterController&&) noexcept;
  ~ClusterController();

  const ClusterTables& tables() const;

  // All of `submissions` or none. A repeated `once_key` ("": none) with the same body gives the
  // first answer, with another kConflict. kInvalidInput names the item, key and remedy; kExhausted:
  // too many jobs.
  Result<std::vector<JobId>> submit(std::span<const Submission> submissions,
                                    std::string_view once_key, std::string_view body_hash,
                                    const Moment& moment);
  // The request that submit() would make of it, or its error; nothing changes.
  Result<sched::JobRequest> check_submission(const Submission& submission,
                                             const Moment& moment) const;
  // kNotFound; kConflict where the job is over, but for the same request again.
  Status cancel(JobId id, const Moment& moment);
  Status set_held(JobId id, bool is_held);
  Status set_priority(JobId id, int priority);
  // JSON: {"queues": [...]} as in a scheduler state. kConflict where jobs wait in a queue that is
  // not there any more.
  Status set_quotas(std::string_view spec);

  // kInvalidInput for a name that is none. Makes the user or replaces it; a new password, or a user
  // that is disabled, ends the sessions of browsers.
  Status set_user(identity::User user);
  // With all tokens of the user; kNotFound.
  Status remove_user(const std::string& name);
  // Forgets tokens of sessions, logins and joins that have expired when this one is made.
  void add_token(identity::AccessToken token);
  Status remove_token(const std::string& id);
  // One use of a token that has a number of them, of the kinds kLogin and kJoin. kNotFound where it
  // is not known, used up or expired: all three look the same from outside.
  Result<identity::AccessToken> use_token(std::string_view secret_hash, identity::TokenUse use,
                                          const Moment& moment);

  // The audit is durable up to this record.
  void mark_audit(std::int64_t number, std::string hash);

  // The agent of a node is connected. Makes the node when it is new. Replicas that were ordered
  // under another journal are lost: nobody knows whether they have started. kConflict when the node
  // has replicas that the facts have no devices for.
  Result<int> join(const NodeIdentity& node, const Moment& moment);
  // A heartbeat, which follows the welcome.
  void hear(int node, const Moment& moment);
  void disconnect(int node);
  // A bit for each device of the node that its agent finds broken.
  void set_failed_devices(int node, std::uint32_t devices);
  // Writes a record of ClusterTables::observed, or removes it (no value). Keys begin with
  // kObserved.
  void set_observed(const std::string& key, std::optional<std::string> value);
  Status set_intent(std::string_view node, NodeIntent intent);
  // Faults of the fabric that the prober blames on servers, by the names of these, one sentence
  // each; all there are, told again every few seconds: without that they are forgotten after
  // kFabricFaultLasts. Names that no node has are left out.
  void set_fabric_faults(const std::map<std::string, std::string>& faults, const Moment& moment);
  // `is_complete`: all that the agent's journal knows: replicas that it does not list have never
  // started, or are gone. Returns the orders that answer reports about what is not wanted any more;
  // kForget only for what is durable: revisions up to `durable`.
  std::vector<ReplicaOrder> report(int node, std::span<const ReplicaReport> reports,
                                   bool is_complete, Revision durable, const Moment& moment);
  // The orders for a node: of jobs whose latest change is durable. Repeating them does no harm.
  std::vector<ReplicaOrder> orders_for(int node, Revision durable) const;

  // Time passes: nodes fall silent, are fenced; pauses end. Call it a few times a second.
  void tick(const Moment& moment);
  // Removes jobs that are over and idempotency keys when they are old, some thousand in a call; a
  // job whose end is not durable stays, as its agents must not forget it before.
  void remove_old(Revision durable, const Moment& moment);

  // Places that the scheduler chose (scheduling_view.h). Each fails with kConflict where the state
  // has changed since: then nothing happens, and the next decision sees the new state.
  Status start(JobId id, std::vector<Replica> places, const Moment& moment);
  // Why a pending job did not start in the latest decision; nothing where it is not pending.
  void set_waiting_reason(JobId id, std::string reason);
  Status evict(JobId id, std::string reason, const Moment& moment);
  Status move(JobId id, std::vector<Replica> places, std::string reason, const Moment& moment);

  // Takes what has changed since the last call; gives changed objects their new revisions.
  Effects take_effects();

 private:
  template <typename Which>
  void remove_tokens(Which which);

  std::unique_ptr<ControllerState> state_;
};

}  // namespace regatta::control
