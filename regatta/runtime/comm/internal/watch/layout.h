// comm/internal/watch/layout.h: the watch file, in which a rank shows its operations to the other
// processes of its user at any time: an unnamed, sealed memory file "regatta-coll-watch" that
// readers find among the descriptors of the process (/proc/PID/fd) and map. It ends with the
// process.
//
//   header | peers[world_size] | groups[group_slots] | members[group_slots][world_size]
//          | flights[flight_slots]
//
// Values that change together form a Record: one writer at a time, any number of readers, no lock.
// Its version is odd while the writer writes, and grows with each change: a reader that sees an odd
// version, or another one after than before, reads again. Times are seconds of CLOCK_MONOTONIC.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace regatta::comm {

inline constexpr char kWatchName[] = "regatta-coll-watch";
inline constexpr std::uint64_t kWatchMagic = 0x6863746157677252ULL;  // "RrgWatch"
inline constexpr std::uint32_t kWatchVersion = 1;
inline constexpr std::uint32_t kGroupSlots = 128;    // communicators shown at a time
inline constexpr std::uint32_t kFlightSlots = 1024;  // operations remembered

// `kWords` words that are written and read together.
template <std::size_t kWords>
struct alignas(kWords % 8 == 7 ? 64 : 8) Record {
  std::atomic<std::uint64_t> version;
  std::atomic<std::uint64_t> words[kWords];

  using Values = std::array<std::uint64_t, kWords>;

  // Each word is released, so no reader sees a new word with the old version.
  void write(const Values& values) {
    const std::uint64_t before = version.load(std::memory_order_relaxed);
    version.store(before + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < kWords; ++i)
      words[i].store(values[i], std::memory_order_release);
    version.store(before + 2, std::memory_order_release);
  }
  // Nothing when the writer was writing each of `tries` times.
  std::optional<Values> read(int tries = 1000) const {
    Values values{};
    for (int i = 0; i < tries; ++i) {
      const std::uint64_t before = version.load(std::memory_order_acquire);
      for (std::size_t word = 0; word < kWords; ++word)
        values[word] = words[word].load(std::memory_order_acquire);
      if (before % 2 == 0 && version.load(std::memory_order_relaxed) == before) return values;
    }
    return std::nullopt;
  }
};

// Words of WatchGroup::lanes. kLaneMoved and kLaneProgressed change alone while an operation runs.
enum LaneWord : std::size_t {
  kLaneSequence,
  kLaneCall,  // encode_call() or encode_transfer()
  kLaneBytes,
  kLaneMoved,
  kLaneStarted,
  kLaneProgressed,
  kLaneStatus,  // OperationStatus
  kLaneWords
};
// Words of a flight.
enum FlightWord : std::size_t {
  kFlightGroup,
  kFlightSequence,  // with kLaneBit where it is a transfer
  kFlightCall,
  kFlightBytes,
  kFlightStarted,
  kFlightEnded,
  kFlightStatus,
  kFlightWords
};

inline constexpr std::uint64_t kLaneBit = std::uint64_t{1} << 63;

// kRuns, or how the operation ended: 2, and 3 + Code where it failed.
enum class OperationStatus : std::uint64_t { kNone = 0, kRuns = 1, kDone = 2, kFailed = 3 };

// Collectives run one after the other. The transfer lane shows the oldest send or receive.
enum class Lane : std::size_t { kCollective, kTransfer };

inline constexpr std::size_t kWatchTextBytes = 1016;
using WatchText = Record<kWatchTextBytes / 8>;  // ended by a zero byte

struct WatchHeader {
  std::atomic<std::uint64_t> magic;  // written last
  std::uint32_t version;
  std::int32_t pid;  // in the pid namespace of the process
  std::uint32_t rank;
  std::uint32_t world_size;
  std::uint32_t group_slots;
  std::uint32_t flight_slots;
  std::uint64_t world;       // the same on all ranks of this world only
  std::uint32_t token_hash;  // 32 bits: tells jobs apart without revealing the token
  std::uint32_t reserved;
  double started_s;
  char job[64];                              // ended by a zero byte, as all texts
  char server[64];                           // ranks with the same text share memory
  alignas(64) std::atomic<double> ticked_s;  // last tick of the progress thread
  std::atomic<std::uint64_t> flights;        // how many operations ended so far
  std::atomic<double> judged_s;              // the verdict was written; 0: never
  alignas(64) WatchText verdict;             // on the operation that stands still
  WatchText error;                           // of the failed world
};

struct WatchPeer {
  char name[112];                           // "rank 3 (s1/1) at s1"
  std::atomic<std::uint64_t> sent_bytes;    // to it, over the network and through shared memory
  std::atomic<std::uint64_t> has_departed;  // 1: its connection is closed
};

struct alignas(64) WatchGroup {
  std::atomic<std::uint64_t> id;         // of the communicator; 0: the slot is free
  std::atomic<std::uint32_t> rank;       // in the communicator
  std::atomic<std::uint32_t> size;       // its members: members[slot][0, size), world ranks
  std::atomic<std::uint64_t> submitted;  // collectives called so far
  std::atomic<std::uint64_t> ended;      // and ended
  Record<kLaneWords> lanes[2];           // by Lane
};

using WatchFlight = Record<kFlightWords>;  // number n lies in slot n % flight_slots

inline constexpr std::size_t kWatchHeaderBytes = 4096;

static_assert(std::atomic<double>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(offsetof(WatchHeader, pid) == 12);
static_assert(offsetof(WatchHeader, world) == 32);
static_assert(offsetof(WatchHeader, started_s) == 48);
static_assert(offsetof(WatchHeader, job) == 56);
static_assert(offsetof(WatchHeader, server) == 120);
static_assert(offsetof(WatchHeader, ticked_s) == 192);
static_assert(offsetof(WatchHeader, flights) == 200);
static_assert(offsetof(WatchHeader, judged_s) == 208);
static_assert(offsetof(WatchHeader, verdict) == 256);
static_assert(offsetof(WatchHeader, error) == 256 + 1024);
static_assert(sizeof(WatchHeader) <= kWatchHeaderBytes);
static_assert(sizeof(WatchPeer) == 128);
static_assert(sizeof(WatchGroup) == 192 && offsetof(WatchGroup, lanes) == 64);
static_assert(sizeof(WatchFlight) == 64);

// The offsets of the parts in the file, from the three counts in its header.
struct WatchShape {
  std::uint32_t world_size = 0;
  std::uint32_t group_slots = kGroupSlots;
  std::uint32_t flight_slots = kFlightSlots;

  std::size_t peers_at() const { return kWatchHeaderBytes; }
  std::size_t groups_at() const {
    return (peers_at() + world_size * sizeof(WatchPeer) + 63) / 64 * 64;
  }
  std::size_t members_at() const { return groups_at() + group_slots * sizeof(WatchGroup); }
  std::size_t flights_at() const {
    const std::size_t members = std::size_t{group_slots} * world_size * sizeof(std::uint32_t);
    return (members_at() + members + 63) / 64 * 64;
  }
  std::size_t bytes() const { return flights_at() + flight_slots * sizeof(WatchFlight); }
};

// A mapped file, of this process or another one.
struct WatchMap {
  std::byte* memory = nullptr;
  WatchShape shape;

  WatchHeader& header() const { return *reinterpret_cast<WatchHeader*>(memory); }
  WatchPeer& peer(std::size_t rank) const {
    return reinterpret_cast<WatchPeer*>(memory + shape.peers_at())[rank];
  }
  WatchGroup& group(std::size_t slot) const {
    return reinterpret_cast<WatchGroup*>(memory + shape.groups_at())[slot];
  }
  std::atomic<std::uint32_t>* members(std::size_t slot) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(memory + shape.members_at()) +
           slot * shape.world_size;
  }
  WatchFlight& flight(std::uint64_t number) const {
    return reinterpret_cast<WatchFlight*>(memory + shape.flights_at())[number % shape.flight_slots];
  }
};

inline std::uint64_t word_of(double value) {
  return std::bit_cast<std::uint64_t>(value);
}
inline double double_of(std::uint64_t word) {
  return std::bit_cast<double>(word);
}

}  // namespace regatta::comm
