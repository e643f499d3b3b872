// comm/internal/engine/link_set.h: the links of a rank to all ranks of its world, and the one place
// where the progress thread sleeps: epoll_wait over the links' descriptors and a wake-up eventfd.
// All functions but wake() belong to the progress thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/epoll.h>
#include <sys/types.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/peer_channel.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"
#include "regatta/runtime/comm/internal/transport/verbs.h"

namespace regatta::comm {

class LinkSet {
 public:
  // names: by world rank, for messages. Both outlive this object.
  LinkSet(int rank, const std::vector<std::string>& names, LinkSink& sink);

  // Makes the links, once. channels: by world rank; rdma: null where no channel uses it;
  // queue_pairs: of each RDMA link.
  Status open(std::vector<PeerChannel> channels, const std::shared_ptr<VerbsDevice>& rdma,
              int queue_pairs);

  // By world rank.
  const std::vector<std::unique_ptr<PeerLink>>& all() const { return links_; }
  PeerLink& link(int peer) const { return *at(links_, peer); }
  // The link goes through shared memory.
  bool is_shared(int peer) const { return at(is_shared_, peer); }
  // The processes of the ranks on this server, by world rank; 0: not known.
  const std::vector<pid_t>& pids() const { return pids_; }

  void post_control(int peer, const PacketHeader& header, std::string_view text = {}) {
    link(peer).post_control(header, text);
  }
  // To all other ranks.
  void post_to_peers(PacketKind kind, std::string_view text = {});

  // Moves what can be moved now; true when something moved.
  bool progress();
  // Before the thread sleeps: true when progress() has work after all.
  bool arm();
  void disarm();
  // Waits at most `timeout_ms` for events; true when any came.
  bool wait(int timeout_ms);
  // Passes the events of the last wait to the links.
  void dispatch_events();
  // Ends the current or the next wait. Any thread.
  void wake() const;

 private:
  Result<std::unique_ptr<PeerLink>> make_link(int peer, PeerChannel channel,
                                              const std::shared_ptr<VerbsDevice>& rdma,
                                              int queue_pairs);
  Status add_to_epoll(int fd, int peer, int slot);

  const int rank_;
  const std::vector<std::string>& names_;
  LinkSink& sink_;
  std::vector<std::unique_ptr<PeerLink>> links_;
  std::vector<bool> is_shared_;
  std::vector<pid_t> pids_;
  os::UniqueFd epoll_;
  os::UniqueFd wake_;
  std::array<epoll_event, 64> events_{};
  std::size_t event_count_ = 0;
};

}  // namespace regatta::comm
