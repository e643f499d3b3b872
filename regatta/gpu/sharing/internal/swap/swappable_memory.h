// sharing/internal/swap/swappable_memory.h: the memory of one process on one device that can be
// swapped out and in: allocations keep their addresses, and are moved in chunks, several copies at
// a time. The most recently used allocation comes in first and goes out last. A chunk that was
// never written is not copied, nor is one whose copy in the host is still valid. One thread at a
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "regatta/gpu/sharing/internal/ledger/ledger.h"
#include "regatta/gpu/sharing/internal/swap/swap_device.h"

namespace regatta::sharing {

class SwappableMemory {
 public:
  using Home = SwapDevice::Home;
  static constexpr std::uint64_t kBlock = REGATTA_BLOCK_BYTES;
  static constexpr std::uint64_t kChunk = 32ULL << 20;

  struct Totals {
    std::uint64_t all = 0;
    std::uint64_t resident = 0;  // on the device, memory on its way included
    std::uint64_t pinned = 0;    // of the host
    std::uint64_t moved_in = 0;  // copied, ever
    std::uint64_t moved_out = 0;
  };
  struct Range {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  // as was asked for
    std::uint64_t taken = 0;  // in whole blocks
    Home home = nullptr;
  };
  // Called after each chunk.
  using Progress = std::function<void(const Totals&)>;
  // Whether the memory may be resident; called before each chunk is brought in, which the totals
  // already count.
  using Permit = std::function<bool(const Totals&)>;

  // `device` outlives this object.
  explicit SwappableMemory(SwapDevice& device, std::uint64_t chunk_bytes = kChunk)
      : device_(device), chunk_bytes_(chunk_bytes) {}

  static std::uint64_t taken_by(std::uint64_t bytes) {
    return bytes > ~0ULL - kBlock ? ~0ULL / kBlock * kBlock
                                  : (bytes + kBlock - 1) / kBlock * kBlock;
  }

  // Reserves an address; nothing is on the device yet. None: there are no addresses left.
  std::optional<std::uint64_t> allocate(Home home, std::uint64_t bytes);
  // Frees an allocation that no work uses any more; false when there is none at the address.
  bool free(std::uint64_t address);
  std::optional<Range> find(std::uint64_t address) const;  // the allocation that contains it
  std::vector<Range> of_home(Home home) const;
  std::vector<Home> homes() const;

  // wrote(): a copy or set writes to the allocation. wrote_all(): launched work may write to all.
  void wrote(std::uint64_t address);
  void wrote_all();
  void used(std::uint64_t address);

  // Moves memory out until at most `resident` is on the device; false when a copy failed or the
  // host cannot pin more: then uncopied memory stays. No work may be in progress.
  bool move_out(std::uint64_t resident, const Progress& progress = {});
  // Moves memory in until all of it or `resident` is on the device; false when the device had no
  // room or a copy failed: then it may be called again.
  bool move_in(std::uint64_t resident, const Progress& progress = {}, const Permit& permit = {});

  const Totals& totals() const { return totals_; }

 private:
  struct Chunk {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    void* host = nullptr;
    bool is_there = false;
    bool is_blank = true;   // never written
    bool is_saved = false;  // the host's copy is valid
  };
  struct Allocation {
    Range range;
    std::uint64_t used = 0;  // its last use, by the counter uses_
    std::vector<Chunk> chunks;
  };
  struct Move {
    Home home = nullptr;
    Chunk* chunk = nullptr;
    SwapDevice::CopyHandle ticket = nullptr;
  };
  static constexpr std::size_t kDepth = 4;  // copies under way

  std::vector<Allocation*> by_use();
  Allocation* allocation_at(std::uint64_t address);
  bool finish_out(const Move& move, const Progress& progress);
  bool finish_in(const Move& move, const Progress& progress);
  void unmap_chunk(Chunk& chunk, const Progress& progress);
  bool begin_out(Home home, Chunk& chunk, std::vector<Move>& moves, const Progress& progress);
  bool begin_in(Home home, Chunk& chunk, std::vector<Move>& moves, const Progress& progress);
  void report(const Progress& progress) const;

  SwapDevice& device_;
  const std::uint64_t chunk_bytes_;
  std::map<std::uint64_t, Allocation> allocations_;  // by address
  Totals totals_;
  std::uint64_t uses_ = 0;
};

}  // namespace regatta::sharing
