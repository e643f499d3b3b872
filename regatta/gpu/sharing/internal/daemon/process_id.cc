#include "regatta/gpu/sharing/internal/daemon/process_id.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/page_file.h"

namespace regatta::sharing {
namespace {

std::string proc_path(pid_t pid, const char* what) {
  return "/proc/" + std::to_string(pid) + "/" + what;
}

// All memory files are on one device.
dev_t memory_file_device() {
  static const dev_t device = [] {
    const os::UniqueFd any(::memfd_create("regatta-gpu-daemon", MFD_CLOEXEC));
    struct stat status {};
    return any && ::fstat(any.get(), &status) == 0 ? status.st_dev : dev_t{0};
  }();
  return device;
}

// A process can make this one look at no more.
constexpr int kThreadsLookedAt = 8;
constexpr int kDescriptorsLookedAt = 4096;

// Opens the file behind a link in /proc if it has this inode; others' files are never opened.
os::UniqueFd open_inode(const std::string& link, std::uint64_t inode) {
  const os::UniqueFd place(::open(link.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!place || ::fstat(place.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_ino != inode || status.st_dev != memory_file_device())
    return {};
  return open_again(place, O_RDWR | O_CLOEXEC);
}

}  // namespace

Result<ProcessStat> read_process(pid_t pid) {
  const std::string path = proc_path(pid, "stat");
  const os::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return os::errno_error("process " + std::to_string(pid));
  std::array<char, 1024> text{};
  const ssize_t size = ::read(fd.get(), text.data(), text.size() - 1);
  // The name is in parentheses and may contain any letter, so the last one ends it.
  const char* end = size > 0 ? std::strrchr(text.data(), ')') : nullptr;
  ProcessStat process;
  char state = 0;
  unsigned long long start = 0;
  // Fields 3 (state), 4 (parent) and 22 (start) of proc(5).
  if (end == nullptr ||
      std::sscanf(end + 1,  // NOLINT(cert-err34-c): three fields of the kernel's
                  " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &state, &process.parent, &start) != 3) {
    return Error{Code::kNotFound, "process " + std::to_string(pid) + ": is gone"};
  }
  process.id = {pid, start};
  process.has_main_thread = state != 'Z' && state != 'X';
  return process;
}

bool has_ended(const os::UniqueFd& pidfd) {
  pollfd entry{pidfd.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) != 0;
}

std::string folder_of_living_thread(const ProcessStat& process) {
  const std::string own = proc_path(process.id.pid, "");
  if (process.has_main_thread) return own;
  std::error_code error;
  int looked_at = 0;
  for (std::filesystem::directory_iterator entry(own + "task", error), end;
       !error && entry != end && looked_at < kThreadsLookedAt;
       entry.increment(error), ++looked_at) {
    const std::string thread = entry->path().filename().string();
    if (thread != std::to_string(process.id.pid)) return entry->path().string() + "/";
  }
  return own;
}

std::string process_name(pid_t pid) {
  const auto name = os::read_file(proc_path(pid, "comm"));
  return name ? printable(trim(*name), 32) : "";
}

bool is_in_own_pid_namespace(pid_t pid) {
  struct stat own {};
  struct stat other {};
  return ::stat("/proc/self/ns/pid", &own) == 0 &&
         ::stat(proc_path(pid, "ns/pid").c_str(), &other) == 0 && own.st_ino == other.st_ino &&
         own.st_dev == other.st_dev;
}

Result<os::UniqueFd> open_memory_file_of(const ProcessStat& process, const std::string& name,
                                         std::uint64_t inode) {
  const std::string subject = "process " + std::to_string(process.id.pid);
  const std::string target = "/memfd:" + name + " (deleted)";
  std::error_code error;
  int looked_at = 0;
  for (std::filesystem::directory_iterator entry(folder_of_living_thread(process) + "fd", error),
       end;
       !error && entry != end; entry.increment(error)) {
    if (++looked_at > kDescriptorsLookedAt)
      return Error{Code::kExhausted, subject + ": holds too many descriptors to look at them all"};
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry->path(), ignored) != target) continue;
    if (os::UniqueFd fd = open_inode(entry->path().string(), inode)) return fd;
  }
  if (error) return os::errno_error(subject, error.value());
  return Error{Code::kNotFound, subject + ": does not hold " + name};
}

}  // namespace regatta::sharing
