#include "regatta/gpu/sharing/internal/client/tenant_page.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"

namespace regatta::sharing {
namespace {

constexpr int kMostAbove = 64;

// The number of the page's descriptor in /proc/PROCESS/fd. Processes of other users show none.
std::optional<int> page_of(const std::string& process) {
  const std::string target = std::string("/memfd:") + REGATTA_TENANT_PAGE_NAME + " (deleted)";
  const std::string path = "/proc/" + process + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  while (const dirent* entry = folder ? ::readdir(folder.get()) : nullptr) {
    char text[80] = {};
    const ssize_t size = ::readlinkat(::dirfd(folder.get()), entry->d_name, text, sizeof text);
    if (size < 0 || std::string(text, static_cast<std::size_t>(size)) != target) continue;
    const std::string name = entry->d_name;
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    return fd;
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
  for (int i = 0; i < kMostAbove && above > 0; ++i, above = parent_of(above)) {
    const std::string process = std::to_string(above);
    const auto number = page_of(process);
    if (!number) continue;
    // Without O_CLOEXEC, so that children inherit it as they inherit the original.
    const std::string path = "/proc/" + process + "/fd/" + std::to_string(*number);
    const int fd = ::open(path.c_str(), O_RDONLY);  // NOLINT(android-cloexec-open)
    if (fd >= 0) return fd;
  }
  return Error{Code::kNotFound, "this process belongs to no tenant; start it with regatta gpu run"};
}

}  // namespace regatta::sharing
