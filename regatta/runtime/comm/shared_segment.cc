#include "regatta/runtime/comm/shared_segment.h"

#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/log.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::comm {
namespace {

constexpr std::uint64_t kMagic = 0x32666c6568735252ULL;
constexpr std::size_t kHeaderSpace = 4096;
constexpr std::size_t kRegionSpace = (sizeof(SegmentRegion) + 4095) / 4096 * 4096;
constexpr std::size_t kBuffersAt =
    (kHeaderSpace + kRegionsMax * kRegionSpace + (std::size_t{2} << 20) - 1) >> 21 << 21;
constexpr std::size_t kFileBytes = kBuffersAt + kBufferSpace;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static_assert(sizeof(SharedSegmentHeader) <= kHeaderSpace);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace

Result<SharedSegment> SharedSegment::create() {
  os::UniqueFd fd(memfd_create("regatta-coll-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return os::errno_error("make a memory file");
  if (ftruncate(fd.get(), static_cast<off_t>(kFileBytes)) != 0)
    return os::errno_error("size a memory file");
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) return os::errno_error("seal a memory file");
  REGATTA_TRY(shared_segment, map(std::move(fd)));
  shared_segment.header().magic = kMagic;
  return shared_segment;
}

Result<SharedSegment> SharedSegment::open(os::UniqueFd fd) {
  struct stat status {};
  const bool is_right = fd && fstat(fd.get(), &status) == 0 &&
                        status.st_size == static_cast<off_t>(kFileBytes) &&
                        (fcntl(fd.get(), F_GET_SEALS) & kSeals) == kSeals;
  if (!is_right) return Error{Code::kInvalidInput, "the peer's memory file is not a rank's"};
  REGATTA_TRY(shared_segment, map(std::move(fd)));
  if (shared_segment.header().magic != kMagic)
    return Error{Code::kInvalidInput, "the peer's memory file is of another version"};
  return shared_segment;
}

Result<SharedSegment> SharedSegment::map(os::UniqueFd fd) {
  void* memory =
      mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (memory == MAP_FAILED) return os::errno_error("map a memory file");
  return SharedSegment(std::move(fd), static_cast<std::byte*>(memory));
}

SharedSegment::SharedSegment(SharedSegment&& other) noexcept
    : fd_(std::move(other.fd_)), memory_(std::exchange(other.memory_, nullptr)) {}

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(memory_, other.memory_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (memory_ != nullptr) munmap(memory_, kFileBytes);
}

SharedSegmentHeader& SharedSegment::header() const {
  return *reinterpret_cast<SharedSegmentHeader*>(memory_);
}

SegmentRegion& SharedSegment::region(int index) const {
  return *reinterpret_cast<SegmentRegion*>(memory_ + kHeaderSpace +
                                           static_cast<std::size_t>(index) * kRegionSpace);
}

std::byte* SharedSegment::buffers() const {
  return memory_ + kBuffersAt;
}

std::uint64_t SharedSegment::offset_of(const std::byte* data, std::size_t bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(buffers());
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  if (at < begin || at - begin > kBufferSpace || bytes > kBufferSpace - (at - begin))
    return kPrivate;
  return at - begin;
}

SharedSegment open_shared_segment(os::UniqueFd fd) {
  auto shared_segment = SharedSegment::open(std::move(fd));
  if (shared_segment) {
    shared_segment->close_fd();
    return std::move(*shared_segment);
  }
  os::log_warning("coll: collectives inside the server will be slow: " +
                  shared_segment.error().message);
  return {};
}

}  // namespace regatta::comm
