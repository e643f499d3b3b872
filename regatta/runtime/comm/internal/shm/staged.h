// comm/internal/shm/staged.h: collectives between private buffers of the ranks of a server: a rank
// copies the bytes that the others need into its stage, piece by piece, and reads the bytes that it
// needs from theirs. A piece stays in the cache between the two, so each rank reads and writes
// memory itself only once.
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

// Results that are larger than this do not stay in a cache until they are read.
inline constexpr std::size_t kNonTemporalFromBytes = std::size_t{4} << 20;

struct Staged {
  Call call;
  // Stores into the stages: a reader whose core shares no cache with the writer's reads faster from
  // memory than line by line from the writer's cache.
  StoreMode stage = StoreMode::kCached;
  StoreMode store = StoreMode::kCached;  // into the callers' memory
  std::size_t piece_bytes = 0;           // bytes of the call that one round moves
  std::uint64_t rounds = 0;
  bool copies_results = false;
  // Calls whose parts vary (varying.h):
  unsigned slot = 0;              // holds the tables of the parts
  bool is_read_in_place = false;  // the others read this rank's input itself
};

// The same on all ranks for the same call, except the addresses and `stage`. `round_bytes`: bytes
// of a stage that a round uses, at most kStageBytes; 0: the default.
Staged plan_staged(const Call& call, int ranks, StoreMode stage, std::size_t round_bytes = 0);

// The steps of one round; `round` counts from 0 within the call, `stage` is 0 or 1.
void fill(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage);
void combine(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage);
void copy_results(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage);

}  // namespace regatta::comm
