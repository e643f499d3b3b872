#include "regatta/gpu/sharing/internal/client/tenant_page.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "regatta/gpu/sharing/internal/page_file.h"

namespace regatta::sharing {
namespace {

constexpr int kMostAbove = 64;

// Whether the descriptor is of a page as the daemon makes them: it cannot be shortened, and nobody
// writes to it. A program may have files of this name.
bool is_page(int fd) {
  return page_file_status(fd, kTenantPageSeals).has_value();
}

// Opens another process's descriptor, or -1.
int open_page(int folder, const char* name) {
  const os::UniqueFd place(::openat(folder, name, O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!place || ::fstat(place.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_size != REGATTA_PAGE_SIZE)
    return -1;
  // Without O_CLOEXEC, so that children inherit it as they inherit the original.
  os::UniqueFd fd = open_again(place, O_RDONLY);
  return fd && is_page(fd.get()) ? fd.release() : -1;
}

// The page's descriptor among those in /proc/PROCESS/fd: that of this process itself, or a new one.
// Processes of other users show none.
std::optional<int> page_of(const std::string& process) {
  const bool is_self = process == "self";
  const std::string target = std::string("/memfd:") + REGATTA_TENANT_PAGE_NAME + " (deleted)";
  const std::string path = "/proc/" + process + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    const char* const name = entry->d_name;
    int fd = -1;
    std::from_chars(name, name + std::strlen(name), fd);
    // This is answered sooner than the name, and says no for most descriptors.
    if (fd < 0 || (is_self && !is_page(fd))) continue;
    char text[80] = {};
    const ssize_t size = ::readlinkat(::dirfd(folder.get()), name, text, sizeof text);
    if (size < 0 || std::string(text, static_cast<std::size_t>(size)) != target) continue;
    if (!is_self) fd = open_page(::dirfd(folder.get()), name);
    if (fd >= 0) return fd;
  }
  return std::nullopt;
}

// 0 at the top. Source: proc_pid_stat(5): the fourth field; the second may hold any letters and
// ends with the last ')'.
pid_t parent_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/stat";
  const os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char text[512] = {};
  if (!file || ::read(file.get(), text, sizeof text - 1) <= 0) return 0;
  const char* const name_end = std::strrchr(text, ')');
  if (name_end == nullptr || std::strlen(name_end) < 5) return 0;
  const char* const number = name_end + 4;  // ") S "
  pid_t parent = 0;
  std::from_chars(number, number + std::strlen(number), parent);
  return parent;
}

}  // namespace

Result<int> find_tenant_page() {
  const os::UniqueFd folder(::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder && (errno == EMFILE || errno == ENFILE)) {
    return os::errno_error(
        "no descriptor to find this process's tenant by; close some, or raise the limit with "
        "ulimit -n");
  }
  if (const auto own = page_of("self")) return *own;
  pid_t above = ::getppid();
  for (int i = 0; i < kMostAbove && above > 0; ++i, above = parent_of(above))
    if (const auto opened = page_of(std::to_string(above))) return *opened;
  return Error{Code::kNotFound, "this process belongs to no tenant; start it with regatta gpu run"};
}

}  // namespace regatta::sharing
