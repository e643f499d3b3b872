#include "regatta/gpu/sharing/internal/hook/allocation_table.h"

#include "regatta/base/core/mutex.h"

namespace regatta::sharing::hook {
namespace {

// Blocks that an allocation fills wholly, and those at its edges that others may lie in too.
struct Cover {
  std::uint64_t whole_bytes = 0;
  std::array<std::uint64_t, 2> edges{};
  std::size_t edge_count = 0;
};

Cover cover_of(std::uint64_t address, std::uint64_t bytes) {
  Cover cover;
  const std::uint64_t end = address + bytes;
  const std::uint64_t first = address / kBlockBytes;
  const std::uint64_t last = (end - 1) / kBlockBytes;
  const std::uint64_t whole_begin = whole_blocks(address);
  const std::uint64_t whole_end = end / kBlockBytes * kBlockBytes;
  if (whole_end > whole_begin) cover.whole_bytes = whole_end - whole_begin;
  if (address % kBlockBytes != 0) cover.edges[cover.edge_count++] = first;
  if (end % kBlockBytes != 0 && (last != first || cover.edge_count == 0))
    cover.edges[cover.edge_count++] = last;
  return cover;
}

}  // namespace

void AllocationTable::put(const Allocation& allocation) {
  Stripe& stripe = stripe_of(allocation.address);
  const MutexLock lock(stripe.mutex);
  stripe.allocations.insert_or_assign(allocation.address, allocation);
}

std::optional<Allocation> AllocationTable::extract(std::uint64_t address) {
  Stripe& stripe = stripe_of(address);
  const MutexLock lock(stripe.mutex);
  const auto at = stripe.allocations.find(address);
  if (at == stripe.allocations.end()) return std::nullopt;
  const Allocation found = at->second;
  stripe.allocations.erase(at);
  return found;
}

std::vector<Allocation> AllocationTable::extract_of(CUcontext context) {
  std::vector<Allocation> taken;
  for (Stripe& stripe : stripes_) {
    const MutexLock lock(stripe.mutex);
    std::erase_if(stripe.allocations, [&](const auto& entry) {
      if (entry.second.context != context) return false;
      taken.push_back(entry.second);
      return true;
    });
  }
  return taken;
}

std::uint64_t Blocks::add_edge(std::uint64_t block) {
  Stripe& stripe = stripe_of(block);
  const MutexLock lock(stripe.mutex);
  return ++stripe.counts[block] == 1 ? kBlockBytes : 0;
}

std::uint64_t Blocks::remove_edge(std::uint64_t block) {
  Stripe& stripe = stripe_of(block);
  const MutexLock lock(stripe.mutex);
  const auto at = stripe.counts.find(block);
  if (at == stripe.counts.end() || --at->second != 0) return 0;
  stripe.counts.erase(at);
  return kBlockBytes;
}

std::uint64_t Blocks::add(std::uint64_t address, std::uint64_t bytes) {
  const Cover cover = cover_of(address, bytes);
  std::uint64_t taken = cover.whole_bytes;
  for (std::size_t i = 0; i < cover.edge_count; ++i)
    taken += add_edge(cover.edges[i]);
  return taken;
}

std::uint64_t Blocks::remove(std::uint64_t address, std::uint64_t bytes) {
  const Cover cover = cover_of(address, bytes);
  std::uint64_t left = cover.whole_bytes;
  for (std::size_t i = 0; i < cover.edge_count; ++i)
    left += remove_edge(cover.edges[i]);
  return left;
}

}  // namespace regatta::sharing::hook
