#include "regatta/runtime/comm/internal/shm/staged.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/runtime/comm/internal/shm/varying.h"

namespace regatta::comm {
namespace {

// Bytes of one round: the ranks' stages fit in the cache that the cores share. Lines that have left
// the core's own cache by then are read faster than lines that the core must give up (64 MiB
// between 2 ranks: 12.3 ms in rounds of 128 KiB, 9.5 of 512 KiB, 8.1 of 1 or 2 MiB).
constexpr std::size_t kRoundBytes = std::size_t{2} << 20;
static_assert(kRoundBytes <= kStageBytes);

// The bytes of the call that round `round` moves.
ByteRange round_range(const Staged& staged, std::uint64_t round) {
  const std::size_t from = staged.piece_bytes * round;
  return {from, std::min(staged.piece_bytes, staged.call.bytes - from)};
}

// Both of two ranks reduce all of a short vector: no results have to be copied back, and they wait
// for each other half as often, while as many bytes pass between their caches. A long vector would
// be read twice past the caches.
bool reduces_all(const Call& call, int ranks) {
  return call.kind == CallKind::kAllReduce && ranks == 2 && call.bytes < kNonTemporalFromBytes;
}

// Where the part of the vector for or from `rank` begins.
std::size_t part_at(const Staged& staged, int rank) {
  return staged.call.bytes * static_cast<std::size_t>(rank);
}

// Into this rank's stage, for the others.
void write_stage(const Staged& staged, std::byte* to, const std::byte* from, std::size_t bytes) {
  move_bytes(to, from, bytes, staged.stage);
}

// Own input and the pieces of the others, in the order of the ranks.
class SourcePieces {
 public:
  SourcePieces(const ShmPeers& peers, unsigned stage, std::size_t at_piece, const std::byte* own) {
    for (int peer = 0; peer < peers.size(); ++peer)
      at(all_, peer) = peer == peers.rank ? own : peers.of(peer).pieces[stage] + at_piece;
    count_ = static_cast<std::size_t>(peers.size());
  }
  std::span<const std::byte* const> all() const { return {all_.data(), count_}; }

 private:
  std::array<const std::byte*, kPeersMax> all_{};
  std::size_t count_ = 0;
};

void reduce_to(const Staged& staged, const SourcePieces& sources, std::byte* shown, std::byte* out,
               std::size_t bytes) {
  std::array<std::byte*, 2> cached{};
  std::array<std::byte*, 2> streamed{};
  std::size_t cached_count = 0;
  std::size_t streamed_count = 0;
  const auto add = [&](std::byte* target, StoreMode store) {
    if (target == nullptr) return;
    if (store == StoreMode::kCached)
      cached[cached_count++] = target;
    else
      streamed[streamed_count++] = target;
  };
  add(shown, staged.stage);
  add(out, staged.store);
  combine_many(
      staged.call.reduction,
      {.cached = {cached.data(), cached_count}, .streamed = {streamed.data(), streamed_count}},
      sources.all(), bytes);
}

void fill_all_but_own(const Staged& staged, const ShmPeers& peers, const ByteRange& range,
                      unsigned stage) {
  const std::byte* from = staged.call.in + range.from;
  std::byte* piece = peers.own().pieces[stage];
  if (reduces_all(staged.call, peers.size())) return write_stage(staged, piece, from, range.bytes);
  const ByteRange own = part_of(range.bytes, peers.size(), peers.rank);
  write_stage(staged, piece, from, own.from);
  const std::size_t after = own.from + own.bytes;
  write_stage(staged, piece + after, from + after, range.bytes - after);
}

// The part for every other rank; this rank's own part of an all_to_all goes straight to its place.
void fill_divided(const Staged& staged, const ShmPeers& peers, const ByteRange& range,
                  unsigned stage) {
  const Call& call = staged.call;
  const bool only_root = call.kind == CallKind::kScatter;
  if (only_root && peers.rank != call.root) return;
  for (int peer = 0; peer < peers.size(); ++peer) {
    const std::byte* from = call.in + part_at(staged, peer) + range.from;
    if (peer != peers.rank) {
      write_stage(staged,
                  peers.own().pieces[stage] + static_cast<std::size_t>(peer) * staged.piece_bytes,
                  from, range.bytes);
    } else if (call.kind == CallKind::kAllToAll) {
      move_bytes(call.out + part_at(staged, peer) + range.from, from, range.bytes, staged.store);
    } else if (only_root) {
      move_bytes(call.out + range.from, from, range.bytes, staged.store);
    }
  }
}

void combine_all_reduce(const Staged& staged, const ShmPeers& peers, const ByteRange& range,
                        unsigned stage) {
  const Call& call = staged.call;
  if (reduces_all(call, peers.size())) {
    const SourcePieces both(peers, stage, 0, call.in + range.from);
    return reduce_to(staged, both, nullptr, call.out + range.from, range.bytes);
  }
  const ByteRange own = part_of(range.bytes, peers.size(), peers.rank);
  const SourcePieces sources(peers, stage, own.from, call.in + range.from + own.from);
  const bool wants = call.kind == CallKind::kAllReduce || peers.rank == call.root;
  const bool shows = call.kind == CallKind::kAllReduce || peers.rank != call.root;
  reduce_to(staged, sources, shows ? peers.own().results[stage] + own.from : nullptr,
            wants ? call.out + range.from + own.from : nullptr, own.bytes);
}

// Copies the bytes at `at_piece` in the piece of every other rank to their place in the result.
void collect_pieces(const Staged& staged, const ShmPeers& peers, const ByteRange& range,
                    unsigned stage, std::size_t at_piece) {
  for (int peer = 0; peer < peers.size(); ++peer) {
    if (peer == peers.rank) continue;
    move_bytes(staged.call.out + part_at(staged, peer) + range.from,
               peers.of(peer).pieces[stage] + at_piece, range.bytes, staged.store);
  }
}

}  // namespace

Staged plan_staged(const Call& call, int ranks, StoreMode stage, std::size_t round_bytes) {
  Staged staged{.call = call, .stage = stage};
  std::size_t round = kRoundBytes;
  if (round_bytes > 0) {
    const std::size_t least = kCacheLine * static_cast<std::size_t>(ranks);
    round = std::clamp(round_bytes / kCacheLine * kCacheLine, least, kRoundBytes);
  }
  staged.piece_bytes = round;
  if (in_bytes(call, ranks) != call.bytes)  // a part for every rank lies in the stage
    staged.piece_bytes = round / static_cast<std::size_t>(ranks) / kCacheLine * kCacheLine;
  staged.rounds = (call.bytes + staged.piece_bytes - 1) / staged.piece_bytes;
  staged.copies_results = (call.kind == CallKind::kAllReduce && !reduces_all(call, ranks)) ||
                          call.kind == CallKind::kReduce;
  if (whole_bytes(call, ranks) >= kNonTemporalFromBytes) staged.store = StoreMode::kNonTemporal;
  return staged;
}

void fill(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage) {
  const Call& call = staged.call;
  const ByteRange range = round_range(staged, round);
  switch (call.kind) {
    case CallKind::kBarrier:
      return;
    case CallKind::kAllReduce:
    case CallKind::kReduce:
      return fill_all_but_own(staged, peers, range, stage);
    case CallKind::kReduceScatter:
    case CallKind::kScatter:
    case CallKind::kAllToAll:
      return fill_divided(staged, peers, range, stage);
    case CallKind::kAllGather:
    case CallKind::kGather: {
      const bool keeps = call.kind == CallKind::kAllGather || peers.rank == call.root;
      const bool shows = call.kind == CallKind::kAllGather || peers.rank != call.root;
      for (std::size_t at = 0; at < range.bytes; at += kBlockBytes) {
        const std::size_t bytes = std::min(kBlockBytes, range.bytes - at);
        const std::byte* from = call.in + range.from + at;
        if (shows) write_stage(staged, peers.own().pieces[stage] + at, from, bytes);
        if (keeps)
          move_bytes(call.out + part_at(staged, peers.rank) + range.from + at, from, bytes,
                     staged.store);
      }
      return;
    }
    case CallKind::kAllToAllV:
    case CallKind::kAllGatherV:
    case CallKind::kReduceScatterV:
      return fill_varying(staged, peers, round, stage);
    case CallKind::kBroadcast:
      if (peers.rank == call.root)
        write_stage(staged, peers.own().pieces[stage], call.out + range.from, range.bytes);
      return;
  }
}

void combine(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage) {
  const Call& call = staged.call;
  const ByteRange range = round_range(staged, round);
  switch (call.kind) {
    case CallKind::kBarrier:
      return;
    case CallKind::kAllReduce:
    case CallKind::kReduce:
      return combine_all_reduce(staged, peers, range, stage);
    case CallKind::kReduceScatter: {
      const std::size_t mine = static_cast<std::size_t>(peers.rank);
      const SourcePieces sources(peers, stage, mine * staged.piece_bytes,
                                 call.in + part_at(staged, peers.rank) + range.from);
      return reduce_to(staged, sources, nullptr, call.out + range.from, range.bytes);
    }
    case CallKind::kAllGather:
      return collect_pieces(staged, peers, range, stage, 0);
    case CallKind::kGather:
      if (peers.rank == call.root) collect_pieces(staged, peers, range, stage, 0);
      return;
    case CallKind::kBroadcast:
      if (peers.rank != call.root)
        move_bytes(call.out + range.from, peers.of(call.root).pieces[stage], range.bytes,
                   staged.store);
      return;
    case CallKind::kScatter:
      if (peers.rank != call.root)
        move_bytes(call.out + range.from,
                   peers.of(call.root).pieces[stage] +
                       static_cast<std::size_t>(peers.rank) * staged.piece_bytes,
                   range.bytes, staged.store);
      return;
    case CallKind::kAllToAll:
      return collect_pieces(staged, peers, range, stage,
                            static_cast<std::size_t>(peers.rank) * staged.piece_bytes);
    case CallKind::kAllToAllV:
    case CallKind::kAllGatherV:
    case CallKind::kReduceScatterV:
      return combine_varying(staged, peers, round, stage);
  }
}

void copy_results(const Staged& staged, const ShmPeers& peers, std::uint64_t round,
                  unsigned stage) {
  const Call& call = staged.call;
  if (call.kind == CallKind::kReduce && peers.rank != call.root) return;
  const ByteRange range = round_range(staged, round);
  for (int peer = 0; peer < peers.size(); ++peer) {
    if (peer == peers.rank) continue;
    const ByteRange part = part_of(range.bytes, peers.size(), peer);
    move_bytes(call.out + range.from + part.from, peers.of(peer).results[stage] + part.from,
               part.bytes, staged.store);
  }
}

}  // namespace regatta::comm
