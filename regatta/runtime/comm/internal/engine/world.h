// comm/internal/engine/world.h: the ranks of a job as one process sees them, and its one progress
// thread. All communicators that come from one connect() share a World. The thread sleeps in
// epoll_wait; callers' operations (eventfd), packets (TCP, the wake-up sockets of shared memory)
// and the clock wake it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/engine/membership.h"
#include "regatta/runtime/comm/internal/engine/message_matcher.h"
#include "regatta/runtime/comm/internal/engine/operation.h"
#include "regatta/runtime/comm/internal/engine/operation_executor.h"
#include "regatta/runtime/comm/internal/engine/stall_diagnosis.h"
#include "regatta/runtime/comm/internal/shm/shm_world.h"
#include "regatta/runtime/comm/internal/transport/peer_channel.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"
#include "regatta/runtime/comm/internal/transport/verbs.h"
#include "regatta/runtime/comm/internal/watch/wait_history.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {

struct WorldSetup {
  int rank = 0;
  std::vector<PeerChannel> channels;  // by world rank; empty at the own place
  std::vector<std::string> names;     // by world rank: "rank 3 (s1/1) at s1"
  SharedSegment shared_segment;       // the own one
  std::shared_ptr<VerbsDevice> rdma;  // null: no channel uses RDMA
  int connections = 1;                // queue pairs towards each of those
  bool caller_moves_data = true;
  Seconds peer_timeout;
  Seconds progress_timeout;
  std::shared_ptr<WatchFile> watch;  // null: nobody looks
  std::string flight_dir;            // where the end of a failed world is written; empty: nowhere
};

class World final : private LinkSink {
 public:
  // Starts the progress thread, in the control group of the calling thread.
  static Result<std::unique_ptr<World>> start(WorldSetup setup);
  // Waits up to the peer timeout for operations under way, says goodbye to all peers and ends the
  // thread.
  ~World() override;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(names_.size()); }

  // From any thread; together they cost one wake-up. After an error of the world the operations end
  // with it at once.
  void submit(std::vector<std::unique_ptr<Operation>> operations);
  Communicator::Traffic traffic() const;
  // Traffic counts from now on.
  void restart_traffic();
  // What the ranks of this server share; null when there is nothing.
  ShmWorld* shm() { return shm_.get(); }
  // Ends all operations unless an error did; nothing here touches their memory after that.
  void stop();
  // The agreement on who is left.
  Membership& membership() { return membership_; }
  // Where this rank shows what it does; null when nobody looks.
  WatchFile* watch() { return watch_.get(); }
  // Bytes that another rank took from this one's shared segment.
  void count_shared(int peer, std::size_t bytes) {
    shared_bytes_[static_cast<std::size_t>(peer)].bytes.fetch_add(static_cast<long long>(bytes),
                                                                  std::memory_order_relaxed);
  }

 private:
  struct PeerState {
    Seconds heard_at;
    Seconds heartbeat_sent_at;  // when a heartbeat went out last
    bool said_goodbye = false;
    bool departed = false;
  };
  struct Counter {
    std::atomic<long long> bytes = 0;
  };

  explicit World(WorldSetup setup);
  Status make_links(std::vector<PeerChannel> channels, int queue_pairs);
  Result<std::unique_ptr<PeerLink>> make_link(int peer, PeerChannel channel, int queue_pairs);
  Status listen_to(int fd, int peer, int slot);

  // The progress thread.
  void run();
  bool take_operations(Seconds now);
  bool advance(Seconds now);
  void sleep();
  void handle_events(int timeout_ms);
  void tick(Seconds now);
  void send_heartbeats(Seconds now);
  void check_silence(Seconds now);
  void check_departed();
  void take_shared_error();
  bool close_step(Seconds now);
  bool serve_membership();
  void wake() const;

  // Diagnosis of operations that stand still (world_stall.cc).
  void remember(const std::shared_ptr<CommunicatorState>& group);
  void check_stalls(Seconds now);
  Seconds stall_timeout() const;
  Seconds asking_time() const;
  std::vector<StalledCall> find_stalled(Seconds now, Seconds still);
  std::vector<bool> held_ranks(const StallDiagnosis& diagnosis) const;
  bool is_due(const StallDiagnosis& diagnosis, Seconds now) const;
  void decide(StallDiagnosis& diagnosis, Seconds now);
  void ask_peers(StallDiagnosis& diagnosis, Seconds now);
  void reply_to_query(int peer, const MessageKey& key);
  MemberReport member_report(int asker, const MessageKey& key);
  void tell_running(MemberReport& report);
  void note_reply(int peer, const MessageKey& key, std::string_view text);
  Verdict judge_stall(const StallDiagnosis& diagnosis) const;
  std::string describe(const StalledCall& stalled) const;
  void report(StallDiagnosis& diagnosis, Verdict verdict, Seconds now);
  void note_end(const StallDiagnosis& diagnosis, Seconds now);
  // Of operations that move slowly (world_slow_links.cc).
  const Operation* long_operation(Seconds now) const;
  std::optional<LinkUtilization> busiest_link() const;
  void check_link_utilization(Seconds now);
  void note_link_utilization(int peer, const std::optional<LinkUtilization>& utilization);
  // What others may see of it (world_watch.cc).
  void show_progress(Seconds now);
  void refresh_peers();
  void write_flight(const Error& error);

  void fail(const Error& error);
  bool is_flushed() const;
  void end_operations(Seconds now);
  void note_abort(std::string_view text);

  std::byte* place(int peer, const PacketHeader& header) override;
  void arrived(int peer, const PacketHeader& header, const std::byte* payload) override;
  void sent(int peer, OutMessage& message, std::size_t bytes) override;
  void lost(int peer, std::string_view reason) override;

  PeerState& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const std::string& name(int rank) const { return names_[static_cast<std::size_t>(rank)]; }

  // Constant after start().
  const int rank_;
  const std::vector<std::string> names_;
  const Seconds peer_timeout_;
  const Seconds progress_timeout_;
  const std::shared_ptr<WatchFile> watch_;
  const std::string flight_dir_;
  Seconds tick_time_;
  std::shared_ptr<VerbsDevice> rdma_;
  std::vector<std::unique_ptr<PeerLink>> links_;
  std::vector<bool> is_shared_;  // by rank: the link is shared memory
  std::vector<pid_t> pids_;      // by rank: on this server, as far as they can be known
  std::unique_ptr<ShmWorld> shm_;
  os::UniqueFd epoll_;
  os::UniqueFd wake_;
  Membership membership_;

  // The progress thread's own.
  MessageMatcher matcher_;
  OperationExecutor executor_;
  std::vector<PeerState> peers_;
  std::vector<std::weak_ptr<CommunicatorState>> known_groups_;
  std::vector<StallDiagnosis> stall_diagnoses_;
  WaitHistory wait_history_;
  // While a collective takes long: since when, the own links by rank, and the others' busiest ones.
  Seconds utilization_measured_since_;
  Seconds utilization_asked_at_;
  std::vector<LinkUtilizationMeter> meters_;
  std::vector<LinkUtilization> link_utilizations_;
  std::optional<Verdict> slow_link_;
  bool failed_ = false;
  std::optional<Error> announced_;  // the error of the world, until the callers get it
  Seconds announce_until_;
  bool is_stop_requested_ = false;  // by Membership::stop()
  bool any_departed_ = false;
  Seconds now_;
  Seconds ticked_at_;
  std::vector<bool> is_held_;  // by rank, of those with a pid: its process is stopped
  Seconds held_at_;            // when that was looked at
  std::optional<Seconds> close_until_;
  enum class ClosePhase { kOperations, kMessages, kGoodbye, kAcknowledged };
  ClosePhase close_phase_ = ClosePhase::kOperations;

  std::vector<Counter> network_bytes_;
  std::vector<Counter> shared_bytes_;

  std::mutex mutex_;  // guards the following
  std::vector<std::unique_ptr<Operation>> submitted_;
  std::optional<Error> error_;
  bool is_sleeping_ = false;
  bool is_closing_ = false;

  std::thread thread_;
};

}  // namespace regatta::comm
