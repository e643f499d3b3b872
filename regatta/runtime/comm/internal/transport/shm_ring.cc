#include "regatta/runtime/comm/internal/transport/shm_ring.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::comm {
namespace {

constexpr std::size_t kRecordHead = kLine;   // the header, padded
constexpr std::uint32_t kSkip = 0x50494b53;  // where a header would begin: go on at the start
constexpr std::size_t kControlBytes = 4096;
constexpr std::size_t kSegmentBytes = 2 * (kControlBytes + kRingBytes);
static_assert(sizeof(RingControl) <= kControlBytes);

constexpr std::size_t pad(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

RingWriter::RingWriter(RingControl* control, std::byte* data) : control_(control), data_(data) {}

std::optional<RingWriter::Slot> RingWriter::reserve(std::size_t payload, std::size_t least) {
  const std::size_t wanted = kRecordHead + pad(payload);
  const std::size_t needed = kRecordHead + pad(std::min(payload, least));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const std::size_t place = head_ % kRingBytes;
    const std::size_t to_end = kRingBytes - place;
    std::size_t free = kRingBytes - static_cast<std::size_t>(head_ - tail_seen_);
    if (free < wanted) {
      tail_seen_ = control_->tail.load(std::memory_order_acquire);
      free = kRingBytes - static_cast<std::size_t>(head_ - tail_seen_);
    }
    const std::size_t fits = std::min({free, to_end, wanted});
    if (fits >= needed)
      return Slot{data_ + place + kRecordHead, std::min(payload, fits - kRecordHead)};
    if (to_end >= needed || free < to_end) return std::nullopt;
    // The record does not fit before the end: mark the rest as skipped and try at the start. The
    // mark becomes visible with the record that follows.
    std::memcpy(data_ + place, &kSkip, sizeof kSkip);
    head_ += to_end;
  }
  return std::nullopt;
}

bool RingWriter::publish(const PacketHeader& header) {
  std::byte* const record = data_ + head_ % kRingBytes;
  encode_header(header, HeaderBytes(record, kHeaderBytes));
  head_ += kRecordHead + pad(header.payload_bytes);
  // Sequentially consistent, as is the reader's store of its flag: one of the two sees the other.
  control_->head.store(head_, std::memory_order_seq_cst);
  if (control_->reader_sleeps.load(std::memory_order_seq_cst) == 0) return false;
  return control_->reader_sleeps.exchange(0, std::memory_order_seq_cst) != 0;
}

bool RingWriter::wait_for_space() {
  control_->writer_waits.store(1, std::memory_order_seq_cst);
  return control_->tail.load(std::memory_order_seq_cst) != tail_seen_;
}

RingReader::RingReader(RingControl* control, std::byte* data) : control_(control), data_(data) {}

Result<std::optional<RingReader::Record>> RingReader::peek() {
  const std::uint64_t head = control_->head.load(std::memory_order_acquire);
  for (;;) {
    if (head == tail_) return std::optional<Record>();
    const std::size_t place = tail_ % kRingBytes;
    const std::size_t available = static_cast<std::size_t>(head - tail_);
    const Error broken{Code::kInvalidInput, "shared memory ring: broken record"};
    if (available > kRingBytes || available < kRecordHead) return broken;
    std::uint32_t mark = 0;
    std::memcpy(&mark, data_ + place, sizeof mark);
    if (mark == kSkip) {
      tail_ += kRingBytes - place;
      if (tail_ > head) return broken;
      continue;
    }
    REGATTA_TRY(header, decode_header(ConstHeaderBytes(data_ + place, kHeaderBytes)));
    record_bytes_ = kRecordHead + pad(header.payload_bytes);
    if (record_bytes_ > available || place + record_bytes_ > kRingBytes) return broken;
    return std::optional<Record>(Record{header, data_ + place + kRecordHead});
  }
}

bool RingReader::pop() {
  tail_ += record_bytes_;
  control_->tail.store(tail_, std::memory_order_seq_cst);
  if (control_->writer_waits.load(std::memory_order_seq_cst) == 0) return false;
  return control_->writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

bool RingReader::is_empty() const {
  return control_->head.load(std::memory_order_seq_cst) == tail_;
}

bool RingReader::sleep() {
  control_->reader_sleeps.store(1, std::memory_order_seq_cst);
  return !is_empty();
}

void RingReader::wake() {
  control_->reader_sleeps.store(0, std::memory_order_relaxed);
}

Result<RingSegment> RingSegment::create() {
  os::UniqueFd fd(memfd_create("regatta-coll", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return os::errno_error("create shared memory");
  if (ftruncate(fd.get(), static_cast<off_t>(kSegmentBytes)) != 0)
    return os::errno_error("size shared memory");
  // Nobody can cut it short under the other's feet.
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return os::errno_error("seal shared memory");
  return map(std::move(fd));
}

Result<RingSegment> RingSegment::open(os::UniqueFd fd) {
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return os::errno_error("look at shared memory");
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (status.st_size != static_cast<off_t>(kSegmentBytes) || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0)
    return Error{Code::kInvalidInput,
                 "shared memory of a peer: not a sealed segment of the right size"};
  return map(std::move(fd));
}

Result<RingSegment> RingSegment::map(os::UniqueFd fd) {
  void* memory = mmap(nullptr, kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return os::errno_error("map shared memory");
  return RingSegment(std::move(fd), static_cast<std::byte*>(memory));
}

RingSegment::RingSegment(RingSegment&& other) noexcept
    : fd_(std::move(other.fd_)), memory_(std::exchange(other.memory_, nullptr)) {}

RingSegment& RingSegment::operator=(RingSegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(memory_, other.memory_);
  return *this;
}

RingSegment::~RingSegment() {
  if (memory_ != nullptr) munmap(memory_, kSegmentBytes);
}

RingControl* RingSegment::control(int direction) {
  return reinterpret_cast<RingControl*>(memory_ +
                                        kControlBytes * static_cast<std::size_t>(direction));
}

std::byte* RingSegment::data(int direction) {
  return memory_ + 2 * kControlBytes + kRingBytes * static_cast<std::size_t>(direction);
}

RingWriter RingSegment::writer(int direction) {
  return {control(direction), data(direction)};
}

RingReader RingSegment::reader(int direction) {
  return {control(direction), data(direction)};
}

}  // namespace regatta::comm
