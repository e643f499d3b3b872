#include "regatta/gpu/sharing/internal/daemon/process_id.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {
namespace {

std::string proc_path(pid_t pid, const char* what) {
  return "/proc/" + std::to_string(pid) + "/" + what;
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
  process.is_ending = state == 'Z' || state == 'X';
  return process;
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

bool has_mapped(pid_t pid, const std::string& name, std::uint64_t inode) {
  const auto maps = os::read_file(proc_path(pid, "maps"));
  if (!maps) return true;
  const std::string wanted = " " + std::to_string(inode) + " ";
  for (const std::string& line : split(*maps, '\n')) {
    if (line.find("/memfd:" + name) != std::string::npos && line.find(wanted) != std::string::npos)
      return true;
  }
  return false;
}

Result<os::UniqueFd> open_memory_file_of(pid_t pid, const std::string& name, std::uint64_t inode) {
  const std::string target = "/memfd:" + name + " (deleted)";
  std::error_code error;
  for (std::filesystem::directory_iterator entry(proc_path(pid, "fd"), error), end;
       !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry->path(), ignored) != target) continue;
    os::UniqueFd fd(::open(entry->path().c_str(), O_RDWR | O_CLOEXEC));
    struct stat status {};
    if (fd && ::fstat(fd.get(), &status) == 0 && status.st_ino == inode) return fd;
  }
  if (error) return os::errno_error("process " + std::to_string(pid), error.value());
  return Error{Code::kNotFound, "process " + std::to_string(pid) + ": does not hold " + name};
}

}  // namespace regatta::sharing
