#include "regatta/runtime/comm/internal/shm/varying.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/streamed_copy.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {
namespace {

// A rank's part for another one.
struct Entry {
  std::uint64_t from;  // in the input
  std::uint64_t bytes;
  std::uint64_t at;  // in the stream
};
static_assert(sizeof(Entry) * kPeersMax <= kSlotBytes);

std::size_t table_bytes(int ranks) {
  return sizeof(Entry) * static_cast<std::size_t>(ranks);
}

Entry* table_of(const ShmPeers& peers, int peer, unsigned slot) {
  return reinterpret_cast<Entry*>(peers.of(peer).slots[slot]);
}

const Entry& entry_for_us(const ShmPeers& peers, int peer, unsigned slot) {
  return table_of(peers, peer, slot)[peers.rank];
}

std::byte* parts_in_slot(const ShmPeers& peers, int peer, unsigned slot) {
  return peers.of(peer).slots[slot] + table_bytes(peers.size());
}

// Where the parts of a rank lie.
enum class PartPlace { kSlot, kInput, kStages };

PartPlace place_of_parts(const ShmPeers& peers, std::uint64_t in, std::uint64_t stream_bytes) {
  if (table_bytes(peers.size()) + stream_bytes <= kSlotBytes) return PartPlace::kSlot;
  return in != kPrivate ? PartPlace::kInput : PartPlace::kStages;
}

PartPlace place_of_parts(const ShmPeers& peers, int peer, unsigned slot) {
  const CallAnnouncement& post = peers.of(peer).entries[slot].post;
  return place_of_parts(peers, post.in, stream_bytes(post));
}

// Calls work(peer, part of the input, place in the stream) for the parts of the stream in order.
template <typename Work>
void for_stream(const Call& call, const ShmPeers& peers, const Work& work) {
  std::size_t place = 0;
  for (int step = 1; step < peers.size(); ++step) {
    const int peer = (peers.rank + step) % peers.size();
    const ByteRange& part = at(call.parts->give, peer);
    work(peer, part, place);
    // All ranks read the same part of an all_gather_v.
    if (call.kind != CallKind::kAllGatherV) place += part.bytes;
  }
}

std::byte* place_of(const Call& call, int peer) {
  std::byte* const out =
      call.kind == CallKind::kReduceScatterV ? call.parts->arrivals.get() : call.out;
  return out + at(call.parts->take, peer).from;
}

void keep_own(const Staged& staged, const ShmPeers& peers) {
  if (staged.call.kind == CallKind::kReduceScatterV) return;  // end_varying() reads it in place
  const ByteRange& own = at(staged.call.parts->give, peers.rank);
  if (own.bytes > 0)
    move_bytes(place_of(staged.call, peers.rank), staged.call.in + own.from, own.bytes,
               staged.store);
}

// Where the input of `peer` lies in this process.
const std::byte* input_of(const ShmPeers& peers, int peer, unsigned slot) {
  return at(peers.buffers, peer) + peers.of(peer).entries[slot].post.in;
}

}  // namespace

ShownParts show_parts(const Call& call, const ShmPeers& peers, unsigned slot,
                      const SharedSegment& shared_segment) {
  Entry* const table = table_of(peers, peers.rank, slot);
  ShownParts shown;
  for_stream(call, peers, [&](int peer, const ByteRange& part, std::size_t at) {
    table[peer] = {part.from, part.bytes, at};
    shown.stream_bytes = std::max<std::uint64_t>(shown.stream_bytes, at + part.bytes);
  });
  if (place_of_parts(peers, kPrivate, shown.stream_bytes) == PartPlace::kSlot) {
    std::byte* const to = parts_in_slot(peers, peers.rank, slot);
    for_stream(call, peers, [&](int, const ByteRange& part, std::size_t at) {
      if (part.bytes > 0) std::memcpy(to + at, call.in + part.from, part.bytes);
    });
  } else {
    shown.in = shared_segment.offset_of(call.in, in_bytes(call, peers.size()));
  }
  return shown;
}

PartMismatch find_mismatch(const Call& call, const ShmPeers& peers, unsigned slot) {
  for (int peer = 0; peer < peers.size(); ++peer) {
    if (peer == peers.rank) continue;
    const std::uint64_t given = entry_for_us(peers, peer, slot).bytes;
    const std::uint64_t taken = at(call.parts->take, peer).bytes;
    if (given != taken) return {peer, given, taken};
  }
  return {};
}

Staged plan_varying(const Call& call, const ShmPeers& peers, unsigned slot, StoreMode stage) {
  Staged staged{.call = call, .stage = stage};
  staged.piece_bytes = kStageBytes;
  staged.slot = slot;
  std::size_t taken = 0;
  for (const ByteRange& part : call.parts->take)
    taken += part.bytes;
  if (taken >= kNonTemporalFromBytes) staged.store = StoreMode::kNonTemporal;
  for (int peer = 0; peer < peers.size(); ++peer) {
    const PartPlace place = place_of_parts(peers, peer, slot);
    if (place == PartPlace::kSlot) continue;
    const std::uint64_t stream = place == PartPlace::kStages
                                     ? stream_bytes(peers.of(peer).entries[slot].post)
                                     : std::uint64_t{1};
    staged.rounds = std::max(staged.rounds, (stream + kStageBytes - 1) / kStageBytes);
  }
  staged.is_read_in_place = place_of_parts(peers, peers.rank, slot) == PartPlace::kInput;
  return staged;
}

void fill_varying(const Staged& staged, const ShmPeers& peers, std::uint64_t round,
                  unsigned stage) {
  if (place_of_parts(peers, peers.rank, staged.slot) != PartPlace::kStages) return;
  const std::size_t begin = round * kStageBytes;
  const std::size_t end = begin + kStageBytes;
  std::size_t done = 0;  // an all_gather_v has one part for all ranks, which is copied once
  for_stream(staged.call, peers, [&](int, const ByteRange& part, std::size_t at) {
    const std::size_t from = std::max({begin, at, done});
    const std::size_t to = std::min(end, at + part.bytes);
    if (from >= to) return;
    move_bytes(peers.own().pieces[stage] + (from - begin), staged.call.in + part.from + (from - at),
               to - from, staged.stage);
    done = to;
  });
}

void combine_varying(const Staged& staged, const ShmPeers& peers, std::uint64_t round,
                     unsigned stage) {
  const std::size_t begin = round * kStageBytes;
  const std::size_t end = begin + kStageBytes;
  if (round == 0) collect_parts(staged, peers);
  for (int step = 1; step < peers.size(); ++step) {
    const int peer = (peers.rank + peers.size() - step) % peers.size();
    if (place_of_parts(peers, peer, staged.slot) != PartPlace::kStages) continue;
    const Entry& entry = entry_for_us(peers, peer, staged.slot);
    const std::size_t from = std::max<std::size_t>(begin, entry.at);
    const std::size_t to = std::min<std::size_t>(end, entry.at + entry.bytes);
    if (from >= to) continue;
    move_bytes(place_of(staged.call, peer) + (from - entry.at),
               peers.of(peer).pieces[stage] + (from - begin), to - from, staged.store);
  }
}

void collect_parts(const Staged& staged, const ShmPeers& peers) {
  keep_own(staged, peers);
  for (int step = 1; step < peers.size(); ++step) {
    const int peer = (peers.rank + peers.size() - step) % peers.size();
    const PartPlace place = place_of_parts(peers, peer, staged.slot);
    const Entry& entry = entry_for_us(peers, peer, staged.slot);
    if (place == PartPlace::kStages || entry.bytes == 0) continue;
    const std::byte* const from = place == PartPlace::kSlot
                                      ? parts_in_slot(peers, peer, staged.slot) + entry.at
                                      : input_of(peers, peer, staged.slot) + entry.from;
    move_bytes(place_of(staged.call, peer), from, entry.bytes, staged.store);
  }
}

void end_varying(const Call& call, const ShmPeers& peers) {
  if (call.kind != CallKind::kReduceScatterV) return;
  const ByteRange& own = at(call.parts->give, peers.rank);
  if (own.bytes == 0) return;
  std::array<const std::byte*, kPeersMax> sources{};
  const auto ranks = static_cast<std::size_t>(peers.size());
  for (std::size_t peer = 0; peer < ranks; ++peer)
    sources[peer] = static_cast<int>(peer) == peers.rank ? call.in + own.from
                                                         : place_of(call, static_cast<int>(peer));
  std::byte* out = call.out;
  combine_many(call.reduction, {.cached = {&out, 1}, .streamed = {}}, {sources.data(), ranks},
               own.bytes);
}

}  // namespace regatta::comm
