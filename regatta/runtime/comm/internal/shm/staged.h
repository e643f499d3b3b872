// comm/internal/shm/staged.h: collectives between private buffers of the ranks of a server: a rank
// copies what the others need into its stage, piece by piece, and takes what it needs from theirs.
// A piece stays in the cache between the two, so memory itself is only read and written once by
// each rank.
//
//   for each round:   fill -> filled += 1 -> all filled -> combine -> combined += 1
//                     -> all combined -> copy results           (calls with copies_results)
//
// With S bytes of the whole vector and n ranks, a rank stages:
//   all_reduce                  (n-1)/n S pieces, S/n results; n = 2 and S < 4 MiB: S pieces
//   reduce                      (n-1)/n S pieces, S/n results; the root stages no results and takes
//                               (n-1)/n S of them
//   reduce_scatter, all_to_all  (n-1)/n S pieces
//   all_gather, gather          S/n pieces (gather: not the root)
//   broadcast, scatter          the root alone: S, (n-1)/n S pieces
// Elements are reduced in the order of the ranks, whatever the rounds: the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "regatta/model/collective/call.h"
#include "regatta/model/collective/streamed_copy.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"

namespace regatta::comm {

// Results that are larger than this are not read again soon enough to find them in a cache.
inline constexpr std::size_t kNonTemporalFromBytes = std::size_t{4} << 20;

struct Staged {
  Call call;
  // Of what goes to the stages: a rank whose core shares no cache with the reader's gets it faster
  // from memory than line by line from the writer's cache.
  StoreMode stage = StoreMode::kCached;
  StoreMode store = StoreMode::kCached;  // of what goes to the callers' memory
  std::size_t piece_bytes = 0;           // of the call's bytes that one round moves
  std::uint64_t rounds = 0;
  bool copies_results = false;
  // Of calls whose parts vary (varying.h):
  unsigned slot = 0;              // where the ranks show them
  bool is_read_in_place = false;  // the others read this rank's input itself
};

// The same on all ranks for the same call, but for the addresses and `stage`. `round_bytes`: that a
// stage takes in a round, at most kStageBytes; 0: all of it.
Staged plan_staged(const Call& call, int ranks, StoreMode stage, std::size_t round_bytes = 0);

// One round's parts; `round` counts from 0 within the call, `stage` is 0 or 1.
void fill(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage);
void combine(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage);
void copy_results(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage);

}  // namespace regatta::comm
