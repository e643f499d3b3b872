// comm/internal/engine/peer_liveness.h: which peers of a rank are alive: when each was heard last,
// which said goodbye, and whose connection is closed. Pure: time is an argument.
#pragma once

#include <cstddef>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::comm {

class PeerLiveness {
 public:
  // `timeout`: how long a living peer may be silent.
  PeerLiveness(int rank, std::size_t world_size, Seconds timeout, Seconds now);

  int size() const { return static_cast<int>(peers_.size()); }
  void hear(int peer, Seconds now) { at(peers_, peer).heard_at = now; }
  // This process itself stood still, so what the peers sent meanwhile is not read yet: their
  // silence counts from `now` on.
  void restart_silence_timeouts(Seconds now);
  void mark_goodbye(int peer) { at(peers_, peer).said_goodbye = true; }
  void mark_departed(int peer);

  bool said_goodbye(int peer) const { return at(peers_, peer).said_goodbye; }
  bool has_departed(int peer) const { return at(peers_, peer).has_departed; }
  bool any_departed() const { return any_departed_; }

  // The peers that need a heartbeat now, five in each timeout; each counts as sent.
  std::vector<int> due_heartbeats(Seconds now);
  // The peers that have been silent for longer than the timeout, the longest silence first.
  std::vector<int> silent(Seconds now) const;

 private:
  struct Peer {
    Seconds heard_at;
    Seconds heartbeat_sent_at;
    bool said_goodbye = false;
    bool has_departed = false;
  };

  const int rank_;
  const Seconds timeout_;
  std::vector<Peer> peers_;  // by world rank
  bool any_departed_ = false;
};

}  // namespace regatta::comm
