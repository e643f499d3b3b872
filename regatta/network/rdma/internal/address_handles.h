// rdma/internal/address_handles.h: address handles of datagrams, kept to be used again. A handle
// knows the link-layer address of the neighbour on its path as it was when the handle was made: who
// is not heard any more may have another one, so its handles are made anew from time to time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/rdma/wire.h"

struct ibv_ah;

namespace regatta::rdma {

struct HandleLimits {
  std::size_t most = 16384;  // beyond it those that were not used for longest go
  Seconds silence{5};        // after which a handle, and one that could not be made, is made anew
};

// Not thread safe.
class AddressHandles {
 public:
  // make() queries the neighbour's address from the kernel, for up to a second without an answer;
  // null then. free() releases a handle that no packet in flight needs.
  struct Verbs {
    std::function<ibv_ah*(const Gid& to, std::uint16_t source_port)> make;
    std::function<void(ibv_ah*)> free;
  };
  explicit AddressHandles(Verbs verbs, const HandleLimits& limits = {})
      : verbs_(std::move(verbs)), limits_(limits) {}
  AddressHandles(const AddressHandles&) = delete;
  AddressHandles& operator=(const AddressHandles&) = delete;
  ~AddressHandles();

  // Handle for a packet that leaves now; null if there is none. Valid until the next call.
  ibv_ah* find(const Gid& to, std::uint16_t source_port, Seconds now);
  // A packet arrived from there.
  void hear(const Gid& from, Seconds now);
  // Frees replaced handles; call it when no packet is in flight.
  void free_replaced();
  std::size_t size() const { return handles_.size(); }

 private:
  struct Handle {
    ibv_ah* handle = nullptr;
    Seconds made;
    Seconds used;
  };
  struct Peer {
    Seconds heard{-1e9};
    Seconds failed{-1e9};  // to make a handle
    std::size_t handles = 0;
  };

  ibv_ah* make(const Gid& to, std::uint16_t source_port, Peer& peer, Seconds now);
  void make_room();

  const Verbs verbs_;
  const HandleLimits limits_;
  std::map<std::pair<Gid, std::uint16_t>, Handle> handles_;
  std::map<Gid, Peer> peers_;
  std::vector<ibv_ah*> replaced_;
  Seconds refused_{-1e9};  // when a handle could not be made anew
};

}  // namespace regatta::rdma
