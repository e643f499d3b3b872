// sharing/internal/hook/allocation_table.h: what this process has of device memory, by address: who
// asked the driver for how much, and which blocks of a device that takes. The driver takes whole
// blocks; small allocations that lie in one block are charged for it once. Any thread; no lock
// outlives a call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/device/abi/cuda_sharing.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"

namespace regatta::sharing::hook {

constexpr std::uint64_t kBlockBytes = REGATTA_BLOCK_BYTES;

constexpr std::uint64_t whole_blocks(std::uint64_t bytes) {
  return bytes > ~0ULL - kBlockBytes ? ~0ULL / kBlockBytes * kBlockBytes
                                     : (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

// ~0 where it is more than 64 bits.
constexpr std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a > ~b ? ~0ULL : a + b;
}
constexpr std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a > ~0ULL / b ? ~0ULL : a * b;
}

struct Pool;  // exports_pools.cc

struct Allocation {
  std::uint64_t address = 0;  // or a handle
  std::uint64_t bytes = 0;    // for which blocks are counted, 0: none
  std::uint64_t charged = 0;  // apart from blocks
  CUcontext context = nullptr;
  Pool* pool = nullptr;          // that holds and counts it
  std::uint64_t pool_bytes = 0;  // of it
  int device = 0;
};

// Allocations by their address. False, nullopt and nothing where it is not there.
class AllocationTable {
 public:
  void put(const Allocation& allocation);  // in place of one that is forgotten
  std::optional<Allocation> extract(std::uint64_t address);
  std::vector<Allocation> extract_of(CUcontext context);

 private:
  struct Stripe {
    Mutex mutex;
    std::unordered_map<std::uint64_t, Allocation> allocations REGATTA_GUARDED_BY(mutex);
  };
  Stripe& stripe_of(std::uint64_t address) {
    return stripes_[(address >> 9 ^ address >> 21) % stripes_.size()];
  }
  std::array<Stripe, 64> stripes_;
};

// How many allocations lie in each block in part. Whole blocks in the middle of one belong to it.
class Blocks {
 public:
  // Bytes of the blocks that an allocation takes, beyond those which others have taken.
  std::uint64_t add(std::uint64_t address, std::uint64_t bytes);
  // Bytes of the blocks that nothing lies in any more.
  std::uint64_t remove(std::uint64_t address, std::uint64_t bytes);

 private:
  struct Stripe {
    Mutex mutex;
    std::unordered_map<std::uint64_t, std::uint32_t> counts REGATTA_GUARDED_BY(mutex);
  };
  Stripe& stripe_of(std::uint64_t block) { return stripes_[block % stripes_.size()]; }
  std::uint64_t add_edge(std::uint64_t block);
  std::uint64_t remove_edge(std::uint64_t block);

  std::array<Stripe, 64> stripes_;
};

}  // namespace regatta::sharing::hook
