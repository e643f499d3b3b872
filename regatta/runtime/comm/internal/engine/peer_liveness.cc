#include "regatta/runtime/comm/internal/engine/peer_liveness.h"

#include <algorithm>

namespace regatta::comm {
namespace {

constexpr double kHeartbeatsPerTimeout = 5;

}  // namespace

PeerLiveness::PeerLiveness(int rank, std::size_t world_size, Seconds timeout, Seconds now)
    : rank_(rank), timeout_(timeout), peers_(world_size) {
  for (Peer& peer : peers_)
    peer.heard_at = peer.heartbeat_sent_at = now;
}

void PeerLiveness::restart_silence_timeouts(Seconds now) {
  for (Peer& peer : peers_)
    peer.heard_at = now;
}

void PeerLiveness::mark_departed(int peer) {
  at(peers_, peer).has_departed = any_departed_ = true;
}

std::vector<int> PeerLiveness::due_heartbeats(Seconds now) {
  std::vector<int> due;
  for (int rank = 0; rank < size(); ++rank) {
    Peer& peer = at(peers_, rank);
    const bool is_due = now - peer.heartbeat_sent_at >= timeout_ / kHeartbeatsPerTimeout;
    if (rank == rank_ || peer.has_departed || !is_due) continue;
    peer.heartbeat_sent_at = now;
    due.push_back(rank);
  }
  return due;
}

std::vector<int> PeerLiveness::silent(Seconds now) const {
  std::vector<int> silent;
  for (int rank = 0; rank < size(); ++rank) {
    const Peer& peer = at(peers_, rank);
    if (rank == rank_ || peer.has_departed || peer.said_goodbye) continue;
    if (now - peer.heard_at > timeout_) silent.push_back(rank);
  }
  std::stable_sort(silent.begin(), silent.end(),
                   [&](int a, int b) { return at(peers_, a).heard_at < at(peers_, b).heard_at; });
  return silent;
}

}  // namespace regatta::comm
