// comm/shared_segment.h: the memory file of a rank that all ranks of its server map: counters,
// small messages and staged pieces for the others, and buffers that the others may read and write
// in place. Unnamed and sealed, so it ends with its users. Only the rank itself writes its counters
// and stages; the others read them.
//
//   header | region 0 | region 1 | ... | buffers
//
// A region serves one group of ranks (a communicator). The kernel allocates pages at the first
// access, so unused regions and buffers cost address space only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/collective/setting.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {

inline constexpr std::size_t kCacheLine = 64;
inline constexpr int kRegionsMax = 64;
inline constexpr std::size_t kSlotBytes = std::size_t{8} << 10;
// A rank is never more than one operation ahead of another one, so two would do; with more, no rank
// reads the next slot any more while an operation waits (prefetch_slot() in slot_exchange.h).
inline constexpr std::size_t kSlots = 4;
inline constexpr std::size_t kStages = 2;
inline constexpr std::size_t kBufferSpace = std::size_t{64} << 30;

// The offset of memory that is not in the buffers of its rank.
inline constexpr std::uint64_t kPrivate = ~std::uint64_t{0};

// Announces the operation that a rank has entered.
struct CallAnnouncement {
  std::atomic<std::uint64_t> sequence;  // of the operation within the group, from 1; written last
  std::atomic<std::uint64_t> call;      // what was called: encode_call()
  std::atomic<std::uint64_t> bytes;     // the argument of the call
  std::uint64_t in;                     // offsets within the owner's buffers, or kPrivate
  std::uint64_t out;                    // where the parts vary: stream_bytes()
  double took_s;  // time of the operation before it at this rank; negative: unknown
};

// The length of all parts that the rank of a call with varying parts sends (varying.h).
inline std::uint64_t stream_bytes(const CallAnnouncement& post) {
  return post.out;
}

// Counts rounds over the life of the group (staged.h).
struct RoundCounter {
  alignas(kCacheLine) std::atomic<std::uint64_t> rounds;
};

struct SegmentRegion {
  struct alignas(kCacheLine) Entry {
    CallAnnouncement post;
  };
  Entry entries[kSlots];
  RoundCounter filled;    // pieces staged for the others
  RoundCounter combined;  // pieces of the others read, and their results staged
  RoundCounter ended;     // the last operation of the last group that ended here (not a round)
  alignas(kCacheLine) std::byte slots[kSlots][kSlotBytes];
  alignas(4096) std::byte pieces[kStages][kStageBytes];   // for the others
  alignas(4096) std::byte results[kStages][kStageBytes];  // made of the others' pieces
};

// The last operation that the owner of the region has entered.
inline std::uint64_t last_entered(const SegmentRegion& region) {
  std::uint64_t last = 0;
  for (const SegmentRegion::Entry& entry : region.entries)
    last = std::max(last, entry.post.sequence.load(std::memory_order_acquire));
  return last;
}

struct SharedSegmentHeader {
  std::uint64_t magic;
  alignas(kCacheLine) std::atomic<std::uint32_t> event;     // a futex word: counts the signals
  alignas(kCacheLine) std::atomic<std::uint32_t> sleepers;  // threads that wait for the event
};

class SharedSegment {
 public:
  static Result<SharedSegment> create();
  // Maps a peer's; kInvalidInput unless it is a sealed file of the right size and magic.
  static Result<SharedSegment> open(os::UniqueFd fd);
  SharedSegment() = default;
  SharedSegment(SharedSegment&& other) noexcept;
  SharedSegment& operator=(SharedSegment&& other) noexcept;
  ~SharedSegment();

  bool is_open() const { return memory_ != nullptr; }
  int fd() const { return fd_.get(); }
  void close_fd() { fd_.reset(); }

  SharedSegmentHeader& header() const;
  SegmentRegion& region(int index) const;
  std::byte* buffers() const;

  // The offset of [data, data + bytes) within the buffers, or kPrivate when it lies elsewhere.
  std::uint64_t offset_of(const std::byte* data, std::size_t bytes) const;

 private:
  SharedSegment(os::UniqueFd fd, std::byte* memory) : fd_(std::move(fd)), memory_(memory) {}
  static Result<SharedSegment> map(os::UniqueFd fd);

  os::UniqueFd fd_;
  std::byte* memory_ = nullptr;
};

// The peer's shared segment, or a closed one with a log line.
SharedSegment open_shared_segment(os::UniqueFd fd);

}  // namespace regatta::comm
