#include "regatta/gpu/sharing/internal/client/client_pages.h"

#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta::sharing {
namespace {

// Maps a page at `address`, in place of the one there; at any address when it is null. Other
// threads may be reading there: one page or the other, as the mapping is moved at once.
Result<void*> map_shared(int fd, int protection, void* address) {
  void* const mapped = ::mmap(nullptr, REGATTA_PAGE_SIZE, protection, MAP_SHARED, fd, 0);
  void* memory = mapped;
  if (mapped != MAP_FAILED && address != nullptr) {
    memory = ::mremap(mapped, REGATTA_PAGE_SIZE, REGATTA_PAGE_SIZE, MREMAP_MAYMOVE | MREMAP_FIXED,
                      address);
    if (memory == MAP_FAILED) ::munmap(mapped, REGATTA_PAGE_SIZE);
  }
  if (memory == MAP_FAILED) return os::errno_error("cannot map a page of regatta gpu daemon");
  return memory;
}

}  // namespace

ClientPages::~ClientPages() {
  if (tenant_ != nullptr) ::munmap(tenant_, REGATTA_PAGE_SIZE);
  if (client_page_ != nullptr) ::munmap(client_page_, REGATTA_PAGE_SIZE);
  if (fork_marker_ != nullptr) ::munmap(const_cast<unsigned*>(fork_marker_), REGATTA_PAGE_SIZE);
}

Status ClientPages::map_tenant(int fd) {
  REGATTA_TRY(page, map_shared(fd, PROT_READ, nullptr));
  tenant_ = static_cast<regatta_tenant_page*>(page);
  struct stat of_page {};
  if (::fstat(fd, &of_page) != 0) return os::errno_error("cannot look at the tenant's page");
  tenant_page_fd_ = fd;
  tenant_page_inode_ = of_page.st_ino;
  if (tenant_->magic != REGATTA_TENANT_MAGIC || tenant_->version != REGATTA_TENANT_VERSION) {
    return Error{Code::kInvalidInput,
                 "the tenant's page is of another version; start the program again"};
  }
  void* marker = ::mmap(nullptr, REGATTA_PAGE_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (marker == MAP_FAILED) return os::errno_error("cannot map a page");
  fork_marker_ = static_cast<unsigned*>(marker);
  if (::madvise(marker, REGATTA_PAGE_SIZE, MADV_WIPEONFORK) != 0)
    return os::errno_error("cannot mark a page");
  *fork_marker_ = 1;
  return {};
}

// Children inherit the descriptor that the daemon sent, with which they can prove that they are of
// the tenant, also where this process had opened an ancestor's.
void ClientPages::replace_tenant_page_fd(int fd) {
  const int inherited = std::exchange(tenant_page_fd_, -1);
  struct stat now {};
  // The program may have given the number to a file of its own.
  if (inherited < 0 || ::fstat(inherited, &now) != 0 || now.st_ino != tenant_page_inode_) return;
  const int flags = ::fcntl(inherited, F_GETFD);
  // Where it fails, children find the page by this process, as long as it lives.
  static_cast<void>(::dup3(fd, inherited, (flags & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0));
}

Status ClientPages::accept(DaemonMessage& message) {
  if (message.fds[0]) {
    REGATTA_TRY_DO(map_shared(message.fds[0].get(), PROT_READ, tenant_));
    replace_tenant_page_fd(message.fds[0].get());
  }
  if (message.fds[1]) {
    REGATTA_TRY(page, map_shared(message.fds[1].get(), PROT_READ | PROT_WRITE, client_page_));
    if (client_page_ == nullptr) client_page_ = static_cast<regatta_client_page*>(page);
    client_page_fd_ = KnownFd(std::move(message.fds[1]));
  }
  if (client_page_ == nullptr)
    return Error{Code::kUnavailable, "the daemon gave no lease counters"};
  return {};
}

}  // namespace regatta::sharing
