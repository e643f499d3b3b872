// coll/shm/peers.h: the regions of the ranks of one group, as one rank sees them.
#pragma once

#include <cstddef>
#include <vector>

#include "regatta/coll/shm/shelf.h"

namespace regatta::coll {

struct Peers {
  int rank = 0;
  std::vector<Region*> regions;      // by rank of the group
  std::vector<std::byte*> buffers;   // by rank: where its buffers lie in this process
  std::vector<ShelfHeader*> others;  // all but the own one

  int size() const { return static_cast<int>(regions.size()); }
  Region& own() const { return *regions[static_cast<std::size_t>(rank)]; }
  Region& of(int peer) const { return *regions[static_cast<std::size_t>(peer)]; }
};

}  // namespace regatta::coll
