#include "regatta/gpu/sharing/internal/daemon/shared_page.h"

#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "regatta/gpu/sharing/internal/page_file.h"

namespace regatta::sharing {
namespace {

Result<void*> map_page(int fd) {
  void* memory = ::mmap(nullptr, REGATTA_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return os::errno_error("cannot map a shared page");
  return memory;
}

// The first byte is locked for the open file description that create() made, which fork() and
// SCM_RIGHTS share, and that another one cannot lock while that is open. Source: fcntl(2), open
// file description locks.
struct flock first_byte() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_len = 1;
  return lock;
}

bool is_locked_for(int fd) {
  struct flock lock = first_byte();
  return ::fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace

bool SharedPage::is_handed_down(const os::UniqueFd& fd) {
  const auto status = page_file_status(fd.get(), kTenantPageSeals);
  if (!status || status->st_uid != ::geteuid()) return false;
  const os::UniqueFd other = open_again(fd, O_RDONLY | O_CLOEXEC);
  return other && !is_locked_for(fd.get()) && is_locked_for(other.get());
}

Result<SharedPage> SharedPage::create(const char* name, bool is_read_only) {
  os::UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return os::errno_error("cannot make a shared page");
  if (::ftruncate(fd.get(), REGATTA_PAGE_SIZE) != 0) return os::errno_error("a shared page");
  REGATTA_TRY(memory, map_page(fd.get()));
  struct stat status {};
  const int seals = is_read_only ? kTenantPageSeals : kPageSeals | F_SEAL_SEAL;
  const bool ok = ::fcntl(fd.get(), F_ADD_SEALS, seals) == 0 && ::fstat(fd.get(), &status) == 0;
  struct flock lock = first_byte();
  if (is_read_only && ::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0)
    return os::errno_error("a shared page cannot be locked");
  SharedPage page(std::move(fd), memory, status.st_ino);
  if (!ok) return os::errno_error("a shared page cannot be sealed; Linux 5.1 can");
  return page;
}

Result<SharedPage> SharedPage::map(os::UniqueFd fd) {
  const auto status = page_file_status(fd.get(), kPageSeals);
  if (!status) return Error{Code::kInvalidInput, "the descriptor is no page that a daemon made"};
  REGATTA_TRY(memory, map_page(fd.get()));
  return SharedPage(std::move(fd), memory, status->st_ino);
}

SharedPage::SharedPage(SharedPage&& other) noexcept
    : fd_(std::move(other.fd_)),
      memory_(std::exchange(other.memory_, nullptr)),
      inode_(std::exchange(other.inode_, 0)) {}

SharedPage& SharedPage::operator=(SharedPage&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(memory_, other.memory_);
  std::swap(inode_, other.inode_);
  return *this;
}

SharedPage::~SharedPage() {
  if (memory_ != nullptr) ::munmap(memory_, REGATTA_PAGE_SIZE);
}

}  // namespace regatta::sharing
