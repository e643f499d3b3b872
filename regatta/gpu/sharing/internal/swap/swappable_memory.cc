#include "regatta/gpu/sharing/internal/swap/swappable_memory.h"

#include <algorithm>
#include <iterator>

namespace regatta::sharing {

std::optional<std::uint64_t> SwappableMemory::allocate(Home home, std::uint64_t bytes) {
  const std::uint64_t taken = taken_by(bytes);
  const auto address = device_.reserve(taken);
  if (!address) return std::nullopt;
  Allocation& made = allocations_[*address];
  made = {.range = {.address = *address, .bytes = bytes, .taken = taken, .home = home},
          .used = ++uses_};
  for (std::uint64_t at = 0; at < taken; at += chunk_bytes_)
    made.chunks.push_back({.address = *address + at, .bytes = std::min(chunk_bytes_, taken - at)});
  totals_.all += taken;
  return address;
}

bool SwappableMemory::free(std::uint64_t address) {
  const auto at = allocations_.find(address);
  if (at == allocations_.end()) return false;
  const Range range = at->second.range;
  for (Chunk& chunk : at->second.chunks) {
    if (chunk.is_there) {
      device_.unmap(chunk.address, chunk.bytes);
      totals_.resident -= chunk.bytes;
    }
    if (chunk.host == nullptr) continue;
    device_.unpin(range.home, chunk.host);
    totals_.pinned -= chunk.bytes;
  }
  device_.unreserve(range.address, range.taken);
  totals_.all -= range.taken;
  allocations_.erase(at);
  return true;
}

SwappableMemory::Allocation* SwappableMemory::allocation_at(std::uint64_t address) {
  auto at = allocations_.upper_bound(address);
  if (at == allocations_.begin()) return nullptr;
  --at;
  return address - at->first < at->second.range.taken ? &at->second : nullptr;
}

std::optional<SwappableMemory::Range> SwappableMemory::find(std::uint64_t address) const {
  const auto* const found = const_cast<SwappableMemory*>(this)->allocation_at(address);
  if (found == nullptr) return std::nullopt;
  return found->range;
}

std::vector<SwappableMemory::Range> SwappableMemory::of_home(Home home) const {
  std::vector<Range> found;
  for (const auto& [address, allocation] : allocations_)
    if (allocation.range.home == home) found.push_back(allocation.range);
  return found;
}

std::vector<SwappableMemory::Home> SwappableMemory::homes() const {
  std::vector<Home> found;
  for (const auto& [address, allocation] : allocations_)
    if (std::find(found.begin(), found.end(), allocation.range.home) == found.end())
      found.push_back(allocation.range.home);
  return found;
}

void SwappableMemory::used(std::uint64_t address) {
  if (Allocation* const found = allocation_at(address)) found->used = ++uses_;
}

void SwappableMemory::wrote(std::uint64_t address) {
  Allocation* const found = allocation_at(address);
  if (found == nullptr) return;
  found->used = ++uses_;
  for (Chunk& chunk : found->chunks)
    if (chunk.is_there) chunk.is_blank = chunk.is_saved = false;
}

// Only resident chunks can have been written to.
void SwappableMemory::wrote_all() {
  for (auto& [address, allocation] : allocations_)
    for (Chunk& chunk : allocation.chunks)
      if (chunk.is_there) chunk.is_blank = chunk.is_saved = false;
}

std::vector<SwappableMemory::Allocation*> SwappableMemory::by_use() {
  std::vector<Allocation*> all;
  for (auto& [address, allocation] : allocations_)
    all.push_back(&allocation);
  std::sort(all.begin(), all.end(),
            [](const Allocation* a, const Allocation* b) { return a->used < b->used; });
  return all;
}

void SwappableMemory::report(const Progress& progress) const {
  if (progress) progress(totals_);
}

void SwappableMemory::unmap_chunk(Chunk& chunk, const Progress& progress) {
  device_.unmap(chunk.address, chunk.bytes);
  chunk.is_there = false;
  totals_.resident -= chunk.bytes;
  report(progress);
}

bool SwappableMemory::finish_out(const Move& move, const Progress& progress) {
  if (!device_.wait(move.home, move.ticket)) return false;
  move.chunk->is_saved = true;
  totals_.moved_out += move.chunk->bytes;
  unmap_chunk(*move.chunk, progress);
  return true;
}

bool SwappableMemory::begin_out(Home home, Chunk& chunk, std::vector<Move>& moves,
                                const Progress& progress) {
  if (chunk.is_blank || chunk.is_saved) {
    unmap_chunk(chunk, progress);
    return true;
  }
  if (chunk.host == nullptr) {
    chunk.host = device_.pin(home, chunk.bytes);
    if (chunk.host == nullptr) return false;
    totals_.pinned += chunk.bytes;
  }
  const auto ticket =
      device_.copy(home, SwapDevice::To::kHost, chunk.address, chunk.host, chunk.bytes);
  if (ticket == nullptr) return false;
  moves.push_back({home, &chunk, ticket});
  return true;
}

bool SwappableMemory::move_out(std::uint64_t resident, const Progress& progress) {
  std::vector<Move> moves;
  std::uint64_t left = totals_.resident;  // after all copies in progress
  bool is_good = true;
  for (Allocation* const allocation : by_use()) {
    // From its end, so that the remaining part is the beginning of the allocation.
    for (auto chunk = allocation->chunks.rbegin(); chunk != allocation->chunks.rend(); ++chunk) {
      if (left <= resident || !is_good) break;
      if (!chunk->is_there) continue;
      left -= chunk->bytes;
      is_good = begin_out(allocation->range.home, *chunk, moves, progress);
      if (moves.size() < kDepth) continue;
      is_good = finish_out(moves.front(), progress) && is_good;
      moves.erase(moves.begin());
    }
  }
  for (const Move& move : moves)
    is_good = finish_out(move, progress) && is_good;
  return is_good;
}

bool SwappableMemory::finish_in(const Move& move, const Progress& progress) {
  if (!device_.wait(move.home, move.ticket)) {
    device_.unmap(move.chunk->address, move.chunk->bytes);
    totals_.resident -= move.chunk->bytes;
    return false;
  }
  move.chunk->is_there = true;
  totals_.moved_in += move.chunk->bytes;
  report(progress);
  return true;
}

bool SwappableMemory::begin_in(Home home, Chunk& chunk, std::vector<Move>& moves,
                               const Progress& progress) {
  if (!device_.map(chunk.address, chunk.bytes)) {
    totals_.resident -= chunk.bytes;
    return false;
  }
  if (!chunk.is_saved) {
    chunk.is_there = true;
    report(progress);
    return true;
  }
  const auto ticket =
      device_.copy(home, SwapDevice::To::kDevice, chunk.address, chunk.host, chunk.bytes);
  if (ticket != nullptr) {
    moves.push_back({home, &chunk, ticket});
    return true;
  }
  device_.unmap(chunk.address, chunk.bytes);
  totals_.resident -= chunk.bytes;
  return false;
}

bool SwappableMemory::move_in(std::uint64_t resident, const Progress& progress,
                              const Permit& permit) {
  std::vector<Move> moves;
  std::vector<Allocation*> all = by_use();
  std::reverse(all.begin(), all.end());
  bool is_good = true;
  for (Allocation* const allocation : all) {
    for (Chunk& chunk : allocation->chunks) {
      if (!is_good) break;
      if (chunk.is_there || totals_.resident + chunk.bytes > resident) continue;
      totals_.resident += chunk.bytes;
      is_good = !permit || permit(totals_);
      if (!is_good) {
        totals_.resident -= chunk.bytes;
        break;
      }
      is_good = begin_in(allocation->range.home, chunk, moves, progress);
      if (moves.size() < kDepth) continue;
      is_good = finish_in(moves.front(), progress) && is_good;
      moves.erase(moves.begin());
    }
  }
  for (const Move& move : moves)
    is_good = finish_in(move, progress) && is_good;
  return is_good;
}

}  // namespace regatta::sharing
