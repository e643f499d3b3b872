#include "regatta/platform/node_agent/internal/lease_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/platform/node_agent/internal/run_folder.h"

namespace regatta::node_agent {

// The layout of the file; a change of it is a new version.
struct LeaseFile::Block {
  char mark[8];
  std::uint32_t version;
  std::uint32_t reserved;
  char boot_id[48];
  std::atomic<std::int64_t> last_contact_ns;
  std::atomic<std::int64_t> lease_ns;
  std::atomic<std::int64_t> deadline_ns;  // for supervisors of before replicas had leases
  std::atomic<std::int64_t> kept_until_ns;
};

namespace {

constexpr char kMark[8] = {'r', 'g', 't', 'l', 'e', 'a', 's', 'e'};
constexpr std::uint32_t kVersion = 1;
// Files of before have no more; the rest of their mapped page reads as 0.
constexpr std::size_t kSizeLeast = 88;
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "processes share it");

Error lease_error(const std::string& path, const char* problem) {
  return {Code::kUnavailable, path + ": " + problem};
}

// Maps `size` bytes of an open file, which is closed.
void* map_and_close(int fd, std::size_t size, int protection) {
  void* memory = ::mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  ::close(fd);
  return memory == MAP_FAILED ? nullptr : memory;
}

bool is_large_enough(int fd, std::size_t size) {
  struct stat state {};
  return ::fstat(fd, &state) == 0 && static_cast<std::size_t>(state.st_size) >= size;
}

}  // namespace

std::int64_t boottime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Result<LeaseFile> LeaseFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return lease_error(path, std::strerror(errno));
  if (!is_large_enough(fd, kSizeLeast)) {
    ::close(fd);
    return Error{Code::kInvalidInput, path + ": it is no lease file"};
  }
  LeaseFile file(static_cast<Block*>(map_and_close(fd, sizeof(Block), PROT_READ)));
  if (file.block_ == nullptr) return lease_error(path, std::strerror(errno));
  if (std::memcmp(file.block_->mark, kMark, sizeof kMark) != 0 || file.block_->version != kVersion)
    return Error{Code::kInvalidInput, path + ": it is of another version"};
  return file;
}

Result<LeaseFile> LeaseFile::create(const std::string& path, const std::string& boot_id,
                                    std::int64_t lease_ns) {
  bool is_known = false;
  if (const auto earlier = LeaseFile::open(path)) is_known = boot_id == earlier->block_->boot_id;
  if (!is_known) {
    // Another inode: supervisors of an older version may have mapped the old file.
    const std::string empty(sizeof(Block), '\0');
    REGATTA_TRY_DO(write_durably(path, empty));
  }
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return lease_error(path, std::strerror(errno));
  // The same file: supervisors have mapped it.
  if (!is_large_enough(fd, sizeof(Block)) && ::ftruncate(fd, sizeof(Block)) != 0) {
    ::close(fd);
    return lease_error(path, std::strerror(errno));
  }
  LeaseFile file(static_cast<Block*>(map_and_close(fd, sizeof(Block), PROT_READ | PROT_WRITE)));
  if (file.block_ == nullptr) return lease_error(path, std::strerror(errno));
  if (!is_known) {
    std::memcpy(file.block_->mark, kMark, sizeof kMark);
    boot_id.copy(file.block_->boot_id, sizeof file.block_->boot_id - 1);
    file.renew(boottime_ns(), lease_ns);
    file.block_->version = kVersion;
  }
  return file;
}

LeaseFile::~LeaseFile() {
  if (block_ != nullptr) ::munmap(block_, sizeof(Block));
}

std::int64_t LeaseFile::deadline_ns(std::int64_t lease_ns) const {
  if (lease_ns == 0) return INT64_MAX;
  if (lease_ns < 0) return block_->deadline_ns.load();
  return std::max(last_contact_ns() + lease_ns, kept_until_ns());
}
std::int64_t LeaseFile::kept_until_ns() const {
  return block_->kept_until_ns.load();
}
std::int64_t LeaseFile::last_contact_ns() const {
  return block_->last_contact_ns.load();
}
std::int64_t LeaseFile::lease_ns() const {
  return block_->lease_ns.load();
}

void LeaseFile::renew(std::int64_t last_contact_ns, std::int64_t lease_ns) {
  block_->last_contact_ns.store(last_contact_ns);
  block_->lease_ns.store(lease_ns);
  block_->deadline_ns.store(std::max(last_contact_ns + lease_ns, kept_until_ns()));
}

void LeaseFile::end_extension() {
  block_->kept_until_ns.store(0);
  renew(last_contact_ns(), lease_ns());
}

void LeaseFile::keep_until(std::int64_t time_ns) {
  block_->kept_until_ns.store(std::max(kept_until_ns(), time_ns));
  renew(last_contact_ns(), lease_ns());
}

}  // namespace regatta::node_agent
