// comm/internal/transport/shm_ring.h: a queue of packets in shared memory, one writer and one
// reader. Records (header, payload, both padded to 64 bytes) lie one after the other in a ring; a
// record never wraps, a skip mark fills the end of the ring. Positions count bytes and never go
// back.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

inline constexpr std::size_t kRingBytes = std::size_t{1} << 20;
inline constexpr std::size_t kLine = 64;

// One direction. Zeroed memory is an empty ring.
struct RingControl {
  alignas(kLine) std::atomic<std::uint64_t> head;  // written by the writer
  alignas(kLine) std::atomic<std::uint64_t> tail;  // written by the reader
  alignas(kLine) std::atomic<std::uint32_t> reader_sleeps;
  alignas(kLine) std::atomic<std::uint32_t> writer_waits;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

class RingWriter {
 public:
  RingWriter() = default;
  RingWriter(RingControl* control, std::byte* data);

  // Space for a record with `payload` bytes, or with less (a multiple of 64, at least `least`) when
  // only that is free; nothing when not even that fits.
  struct Slot {
    std::byte* payload;
    std::size_t bytes;
  };
  std::optional<Slot> reserve(std::size_t payload, std::size_t least);
  // Publishes the record of the newest reserve(); header.payload_bytes <= the slot's bytes. True:
  // the reader sleeps and must be woken.
  bool publish(const PacketHeader& header);
  // The reader will wake this side after it frees space; true when space came free meanwhile.
  bool wait_for_space();

 private:
  RingControl* control_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t head_ = 0;
  std::uint64_t tail_seen_ = 0;
};

class RingReader {
 public:
  RingReader() = default;
  RingReader(RingControl* control, std::byte* data);

  struct Record {
    PacketHeader header;
    const std::byte* payload;
  };
  // The oldest record, or nothing; kInvalidInput when the writer broke the format.
  Result<std::optional<Record>> peek();
  // Frees the record of the newest peek(). True: the writer waits and must be woken.
  bool pop();
  bool is_empty() const;
  // The writer will wake this side; true when a record arrived meanwhile.
  bool sleep();
  void wake();

 private:
  RingControl* control_ = nullptr;
  const std::byte* data_ = nullptr;
  std::uint64_t tail_ = 0;
  std::size_t record_bytes_ = 0;
};

// Both directions between two ranks: an unnamed, sealed memory file that ends with its users.
class RingSegment {
 public:
  static Result<RingSegment> create();
  // Maps a peer's segment; kInvalidInput when it is no sealed file of the right size.
  static Result<RingSegment> open(os::UniqueFd fd);
  RingSegment(RingSegment&& other) noexcept;
  RingSegment& operator=(RingSegment&& other) noexcept;
  ~RingSegment();

  int fd() const { return fd_.get(); }
  // The mapping keeps the memory; the descriptor is not needed any more.
  void close_fd() { fd_.reset(); }
  // direction 0: from the side that created it to the other.
  RingWriter writer(int direction);
  RingReader reader(int direction);

 private:
  RingSegment(os::UniqueFd fd, std::byte* memory) : fd_(std::move(fd)), memory_(memory) {}
  static Result<RingSegment> map(os::UniqueFd fd);
  RingControl* control(int direction);
  std::byte* data(int direction);

  os::UniqueFd fd_;
  std::byte* memory_ = nullptr;
};

}  // namespace regatta::comm
