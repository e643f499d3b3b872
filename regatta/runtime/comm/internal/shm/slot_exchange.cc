#include "regatta/runtime/comm/internal/shm/slot_exchange.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "regatta/model/collective/streamed_copy.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {
namespace {

constexpr std::size_t kExpectedBytesMax = 4096;

// The bytes that this rank writes to its slot; may be none.
struct Input {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
};

Input shown_by(const Call& call, const ShmPeers& peers) {
  const std::size_t all = call.bytes * static_cast<std::size_t>(peers.size());
  switch (call.kind) {
    case CallKind::kBarrier:
      return {};
    case CallKind::kBroadcast:
      return peers.rank == call.root ? Input{call.out, call.bytes} : Input{};
    case CallKind::kScatter:
      return peers.rank == call.root ? Input{call.in, all} : Input{};
    case CallKind::kReduceScatter:
    case CallKind::kAllToAll:
      return {call.in, all};
    default:
      return {call.in, call.bytes};
  }
}

void reduce_slots(const Call& call, const ShmPeers& peers, unsigned slot, std::size_t at) {
  std::array<const std::byte*, kPeersMax> sources;  // NOLINT(*-member-init): what is used is set
  const auto ranks = static_cast<std::size_t>(peers.size());
  for (std::size_t peer = 0; peer < ranks; ++peer)
    sources[peer] = peers.regions[peer]->slots[slot] + at;
  std::byte* out = call.out;
  combine_many(call.reduction, {.cached = {&out, 1}, .streamed = {}}, {sources.data(), ranks},
               call.bytes);
}

}  // namespace

bool fits_slot(const Call& call, int ranks) {
  return call.parts == nullptr && in_bytes(call, ranks) <= kSlotBytes;
}

void write_slot(const Call& call, const ShmPeers& peers, unsigned slot) {
  const Input shown = shown_by(call, peers);
  if (shown.bytes > 0) std::memcpy(peers.own().slots[slot], shown.data, shown.bytes);
}

#if defined(__x86_64__)
[[gnu::target("prfchw")]]
#endif
void prefetch_slot(const Call& call, const ShmPeers& peers, unsigned slot) {
  SegmentRegion& own = peers.own();
  __builtin_prefetch(&own.entries[slot].post, 1);
  const std::size_t bytes = std::min(shown_by(call, peers).bytes, kExpectedBytesMax);
  for (std::size_t at = 0; at < bytes; at += kCacheLine)
    __builtin_prefetch(own.slots[slot] + at, 1);
}

void reduce_slots(const Call& call, const ShmPeers& peers, unsigned slot) {
  if (call.bytes == 0) return;  // the buffers may be null then
  const bool is_root = peers.rank == call.root;
  const std::size_t mine = call.bytes * static_cast<std::size_t>(peers.rank);
  switch (call.kind) {
    case CallKind::kBarrier:
      return;
    case CallKind::kAllReduce:
      return reduce_slots(call, peers, slot, 0);
    case CallKind::kReduce:
      if (is_root) reduce_slots(call, peers, slot, 0);
      return;
    case CallKind::kReduceScatter:
      return reduce_slots(call, peers, slot, mine);
    case CallKind::kBroadcast:
      if (!is_root) std::memcpy(call.out, peers.of(call.root).slots[slot], call.bytes);
      return;
    case CallKind::kScatter:
      std::memcpy(call.out, peers.of(call.root).slots[slot] + mine, call.bytes);
      return;
    case CallKind::kGather:
      if (!is_root) return;
      [[fallthrough]];
    case CallKind::kAllGather:
    case CallKind::kAllToAll: {
      const std::size_t at = call.kind == CallKind::kAllToAll ? mine : 0;
      for (int peer = 0; peer < peers.size(); ++peer)
        std::memcpy(call.out + call.bytes * static_cast<std::size_t>(peer),
                    peers.of(peer).slots[slot] + at, call.bytes);
      return;
    }
    case CallKind::kAllToAllV:
    case CallKind::kAllGatherV:
    case CallKind::kReduceScatterV:
      return;  // varying.h
  }
}

}  // namespace regatta::comm
