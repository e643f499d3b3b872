#include "regatta/runtime/comm/internal/shm/in_place.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "regatta/model/collective/streamed_copy.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {
namespace {

// Bytes of all inputs and outputs from which on a result does not stay in a cache.
constexpr std::size_t kStreamAllFrom = std::size_t{8} << 20;

struct Work {
  const Call& call;
  const ShmPeers& peers;
  const std::vector<BufferOffsets>& offsets;
  StoreMode store = StoreMode::kCached;

  const std::byte* in_of(int peer) const {
    const auto index = static_cast<std::size_t>(peer);
    return peer == peers.rank ? call.in : peers.buffers[index] + offsets[index].in;
  }
  std::byte* out_of(int peer) const {
    const auto index = static_cast<std::size_t>(peer);
    return peer == peers.rank ? call.out : peers.buffers[index] + offsets[index].out;
  }
  std::size_t part_at(int rank) const { return call.bytes * static_cast<std::size_t>(rank); }
};

// Reduces `bytes` at `at` of all inputs to these outputs.
void reduce_all(const Work& work, std::size_t at, std::size_t bytes,
                std::span<std::byte* const> outs) {
  std::vector<const std::byte*> sources;
  sources.reserve(work.peers.regions.size());
  for (int peer = 0; peer < work.peers.size(); ++peer)
    sources.push_back(work.in_of(peer) + at);
  const std::span<std::byte* const> none;
  const bool streams = work.store == StoreMode::kNonTemporal;
  combine_many(work.call.reduction,
               {.cached = streams ? none : outs, .streamed = streams ? outs : none}, sources,
               bytes);
}

void all_reduce(const Work& work) {
  const ByteRange own = part_of(work.call.bytes, work.peers.size(), work.peers.rank);
  std::vector<std::byte*> outs;
  for (int peer = 0; peer < work.peers.size(); ++peer)
    if (work.call.kind == CallKind::kAllReduce || peer == work.call.root)
      outs.push_back(work.out_of(peer) + own.from);
  reduce_all(work, own.from, own.bytes, outs);
}

// Copies this rank's input to all: it is read once, where the others would each read it again.
void send_to_all(const Work& work) {
  const std::size_t mine = work.part_at(work.peers.rank);
  for (std::size_t at = 0; at < work.call.bytes; at += kBlockBytes)
    for (int peer = 0; peer < work.peers.size(); ++peer)
      move_bytes(work.out_of(peer) + mine + at, work.call.in + at,
                 std::min(kBlockBytes, work.call.bytes - at), work.store);
}

// Copies the input of every rank, or the part of it for this rank.
void collect(const Work& work) {
  const bool parts = work.call.kind == CallKind::kAllToAll;
  for (int step = 0; step < work.peers.size(); ++step) {
    // Each begins with itself, so that not all read from one rank at once.
    const int peer = (work.peers.rank + step) % work.peers.size();
    const std::byte* from = work.in_of(peer) + (parts ? work.part_at(work.peers.rank) : 0);
    move_bytes(work.call.out + work.part_at(peer), from, work.call.bytes, work.store);
  }
}

// Whether a rank writes where others still read, when the call works on the buffers themselves.
bool is_hazardous(const Call& call, const ShmPeers& peers) {
  const std::size_t all = call.bytes * static_cast<std::size_t>(peers.size());
  const std::size_t mine = call.bytes * static_cast<std::size_t>(peers.rank);
  switch (call.kind) {
    case CallKind::kAllToAll:
      return overlap(call.in, all, call.out, all);
    case CallKind::kReduceScatter:
      return call.out != call.in + mine && overlap(call.in, all, call.out, call.bytes);
    default:
      return false;
  }
}

// Whether the call needs this rank's `in` and `out`.
bool needs_in(const Call& call, int rank) {
  if (call.kind == CallKind::kBarrier || call.kind == CallKind::kBroadcast) return false;
  return call.kind != CallKind::kScatter || rank == call.root;
}

bool needs_out(const Call& call, int rank) {
  switch (call.kind) {
    case CallKind::kBarrier:
      return false;
    case CallKind::kReduce:
    case CallKind::kGather:
      return rank == call.root;
    default:
      return true;
  }
}

}  // namespace

void settle_input(Call& call, const ShmPeers& peers) {
  if (call.kind != CallKind::kAllGather) return;
  std::byte* place = call.out + call.bytes * static_cast<std::size_t>(peers.rank);
  const std::size_t all = call.bytes * static_cast<std::size_t>(peers.size());
  if (call.in == place || !overlap(call.in, call.bytes, call.out, all)) return;
  std::memmove(place, call.in, call.bytes);
  call.in = place;
}

BufferOffsets show_buffers(const Call& call, const ShmPeers& peers,
                           const SharedSegment& shared_segment) {
  if (is_hazardous(call, peers)) return {};
  BufferOffsets offsets{.in = 0, .out = 0};
  if (needs_in(call, peers.rank))
    offsets.in = shared_segment.offset_of(call.in, in_bytes(call, peers.size()));
  if (needs_out(call, peers.rank))
    offsets.out = shared_segment.offset_of(call.out, out_bytes(call, peers.size()));
  return offsets;
}

void run_in_place(const Call& call, const ShmPeers& peers,
                  const std::vector<BufferOffsets>& offsets) {
  Work work{.call = call, .peers = peers, .offsets = offsets};
  if (whole_bytes(call, peers.size()) * static_cast<std::size_t>(peers.size()) >= kStreamAllFrom)
    work.store = StoreMode::kNonTemporal;
  switch (call.kind) {
    case CallKind::kBarrier:
      return;
    case CallKind::kAllReduce:
    case CallKind::kReduce:
      return all_reduce(work);
    case CallKind::kReduceScatter: {
      std::byte* out = call.out;
      return reduce_all(work, work.part_at(peers.rank), call.bytes, {&out, 1});
    }
    case CallKind::kAllGather:
      return send_to_all(work);
    case CallKind::kAllToAll:
      return collect(work);
    case CallKind::kGather:
      if (peers.rank == call.root) collect(work);
      return;
    case CallKind::kBroadcast:
      return move_bytes(call.out, work.out_of(call.root), call.bytes, work.store);
    case CallKind::kScatter:
      return move_bytes(call.out, work.in_of(call.root) + work.part_at(peers.rank), call.bytes,
                        work.store);
    case CallKind::kAllToAllV:
    case CallKind::kAllGatherV:
    case CallKind::kReduceScatterV:
      return;  // varying.h
  }
}

}  // namespace regatta::comm
