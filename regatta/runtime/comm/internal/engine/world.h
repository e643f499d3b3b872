// comm/internal/engine/world.h: the ranks of a job as one process sees them, and its progress
// thread. All communicators that come from one connect() share a World. The thread sleeps in
// epoll_wait; operations of callers (eventfd), packets (TCP, the wake-up sockets of shared memory)
// and the clock wake it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/internal/engine/link_set.h"
#include "regatta/runtime/comm/internal/engine/link_utilization_monitor.h"
#include "regatta/runtime/comm/internal/engine/membership.h"
#include "regatta/runtime/comm/internal/engine/message_matcher.h"
#include "regatta/runtime/comm/internal/engine/operation.h"
#include "regatta/runtime/comm/internal/engine/operation_executor.h"
#include "regatta/runtime/comm/internal/engine/operation_inbox.h"
#include "regatta/runtime/comm/internal/engine/peer_liveness.h"
#include "regatta/runtime/comm/internal/engine/progress_reporter.h"
#include "regatta/runtime/comm/internal/engine/stall_monitor.h"
#include "regatta/runtime/comm/internal/engine/stopped_processes.h"
#include "regatta/runtime/comm/internal/engine/traffic_counters.h"
#include "regatta/runtime/comm/internal/engine/watch_publisher.h"
#include "regatta/runtime/comm/internal/engine/world_ending.h"
#include "regatta/runtime/comm/internal/shm/shm_world.h"
#include "regatta/runtime/comm/internal/transport/peer_channel.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"
#include "regatta/runtime/comm/internal/transport/verbs.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {

struct WorldSetup {
  int rank = 0;
  std::vector<PeerChannel> channels;  // by world rank; empty for the rank itself
  std::vector<std::string> names;     // by world rank: "rank 3 (s1/1) at s1"
  SharedSegment shared_segment;       // of the rank itself
  std::shared_ptr<VerbsDevice> rdma;  // null: no channel uses RDMA
  int connections = 1;                // queue pairs of each channel that does
  bool caller_moves_data = true;
  Seconds peer_timeout;
  Seconds progress_timeout;
  std::shared_ptr<WatchFile> watch;  // null: the rank is not watched
  std::string flight_dir;            // for the flight file of a failed world; empty: none
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

  // Any thread. The operations together cost one wake-up. Once the world has failed they end with
  // its error at once.
  void submit(std::vector<std::unique_ptr<Operation>> operations);
  // Ends all operations, with an error unless the world has failed already; no memory of theirs is
  // touched after that.
  void stop();

  TrafficCounters& traffic() { return traffic_; }
  // The memory that the ranks of this server share; null when there is none.
  ShmWorld* shm() { return shm_.get(); }
  // The agreement on the ranks that are left.
  Membership& membership() { return membership_; }
  // Null: the rank is not watched.
  WatchFile* watch() { return watch_.get(); }

 private:
  World(WorldSetup& setup, std::unique_ptr<ShmWorld> shm);

  // The progress thread.
  void run();
  bool accept_operations(Seconds now);
  bool advance(Seconds now);
  void sleep();
  void tick(Seconds now);
  void check_departed();
  bool serve_membership();
  void reply_to_query(int peer, const MessageKey& key);
  void receive_reply(int peer, const MessageKey& key, std::string_view text);
  void fail(const Error& error);

  std::byte* place(int peer, const PacketHeader& header) override;
  void arrived(int peer, const PacketHeader& header, const std::byte* payload) override;
  void sent(int peer, OutMessage& message, std::size_t bytes) override;
  void lost(int peer, std::string_view reason) override;

  // Constant after start().
  const int rank_;
  const std::vector<std::string> names_;
  const Seconds peer_timeout_;
  const Seconds tick_time_;
  const std::shared_ptr<WatchFile> watch_;
  const std::shared_ptr<VerbsDevice> rdma_;

  TrafficCounters traffic_;
  LinkSet links_;
  const std::unique_ptr<ShmWorld> shm_;
  Membership membership_;
  OperationInbox inbox_;

  // The progress thread's own.
  MessageMatcher matcher_;
  OperationExecutor executor_;
  PeerLiveness peers_;
  StoppedProcesses stopped_;
  ProgressReporter reporter_;
  StallMonitor stalls_;
  LinkUtilizationMonitor utilization_;
  WatchPublisher publisher_;
  WorldEnding ending_;
  bool is_stop_requested_ = false;  // by Membership::stop()
  Seconds now_;
  Seconds ticked_at_;

  std::thread thread_;
};

}  // namespace regatta::comm
