#include "regatta/network/rdma/internal/address_handles.h"

#include <algorithm>

namespace regatta::rdma {

AddressHandles::~AddressHandles() {
  free_replaced();
  for (const auto& [to, one] : handles_)
    verbs_.free(one.handle);
}

void AddressHandles::free_replaced() {
  for (ibv_ah* const one : replaced_)
    verbs_.free(one);
  replaced_.clear();
}

void AddressHandles::hear(const Gid& from, Seconds now) {
  const auto peer = peers_.find(from);
  if (peer != peers_.end()) peer->second.heard = now;
}

// Null where it cannot be made, or could not a moment ago: each try may take a second.
ibv_ah* AddressHandles::make(const Gid& to, std::uint16_t source_port, Peer& peer, Seconds now) {
  if (now - peer.failed < limits_.silence) return nullptr;
  ibv_ah* const made = verbs_.make(to, source_port);
  if (made == nullptr) peer.failed = now;
  return made;
}

ibv_ah* AddressHandles::find(const Gid& to, std::uint16_t source_port, Seconds now) {
  const auto known = handles_.find({to, source_port});
  if (known == handles_.end()) {
    if (handles_.size() >= limits_.most) make_room();
    Peer& peer = peers_[to];
    ibv_ah* const made = make(to, source_port, peer, now);
    if (made == nullptr) return nullptr;
    ++peer.handles;
    handles_[{to, source_port}] = {.handle = made, .made = now, .used = now};
    return made;
  }
  Handle& one = known->second;
  Peer& peer = peers_[to];
  // Behind a dead cable all are silent: one that does not answer is waited for, not each of them.
  if (now - std::max(one.made, peer.heard) >= limits_.silence &&
      now - refused_ >= limits_.silence) {
    // The old one stays where the neighbour does not answer: nothing is better.
    if (ibv_ah* const made = make(to, source_port, peer, now); made != nullptr) {
      replaced_.push_back(one.handle);
      one.handle = made;
      one.made = now;
    } else {
      refused_ = now;
    }
  }
  one.used = now;
  return one.handle;
}

// An eighth at once, because it looks at all of them. Peers go with their last handle.
void AddressHandles::make_room() {
  std::vector<Seconds> used;
  for (const auto& [to, one] : handles_)
    used.push_back(one.used);
  const auto eighth = used.begin() + static_cast<std::ptrdiff_t>(used.size() / 8);
  std::ranges::nth_element(used, eighth);
  const Seconds oldest = *eighth;
  std::erase_if(handles_, [&](const auto& entry) {
    const auto& [to, one] = entry;
    if (one.used > oldest) return false;
    replaced_.push_back(one.handle);
    --peers_[to.first].handles;
    return true;
  });
  std::erase_if(peers_, [](const auto& entry) { return entry.second.handles == 0; });
}

}  // namespace regatta::rdma
