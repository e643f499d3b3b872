#include "regatta/app/cli/internal/gpu_hook_report.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/hook_loading.h"

namespace regatta::cli {
namespace {

constexpr std::uint64_t kWaitNs = 10'000'000'000;
constexpr int kLookMs = 5;

struct Watched {
  pid_t pid = -1;
  os::UniqueFd process;
  os::Pipe report;
  os::Pipe starts;  // both ends close when the process becomes the program
};

bool is_readable(int fd, int wait_ms) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, wait_ms) > 0;
}

// Whether the program names no loader. Source: elf(5), PT_INTERP.
bool is_static(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/exe", pid), std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  Elf64_Phdr segment{};
  for (int i = 0; i < header.e_phnum; ++i) {
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment) ||
        segment.p_type == PT_INTERP)
      return false;
  }
  return true;
}

// Whether the loader has mapped a library of the program, but not the hook, which comes first.
bool loads_without_hook(pid_t pid) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  bool has_library = false;
  for (std::string line; std::getline(maps, line);) {
    const std::string_view name = std::string_view(line).substr(line.find_last_of('/') + 1);
    if (name.starts_with("libregatta_gpu.so")) return false;
    has_library = has_library || (name.find(".so") != name.npos && !name.starts_with("ld"));
  }
  return has_library;
}

// Whether the report came, or none is to be expected any more.
bool is_limited(Watched& watched) {
  char byte = 0;
  // Both ends are closed when the program starts: it fails to, or it has.
  while (!is_readable(watched.starts.read_end.get(), kLookMs))
    if (is_readable(watched.process.get(), 0)) return true;
  if (is_static(watched.pid)) return is_readable(watched.process.get(), 0);
  const std::uint64_t end = os::monotonic_ns() + kWaitNs;
  int times_without = 0;
  while (os::monotonic_ns() < end) {
    if (is_readable(watched.report.read_end.get(), kLookMs))
      return ::read(watched.report.read_end.get(), &byte, 1) == 1 ||
             is_readable(watched.process.get(), 100);
    if (is_readable(watched.process.get(), 0)) return true;
    // The second time, since the list may have been read while the loader wrote it.
    times_without = loads_without_hook(watched.pid) ? times_without + 1 : 0;
    if (times_without >= 2 && !is_readable(watched.report.read_end.get(), 0)) return false;
  }
  return false;
}

[[noreturn]] void watch(Watched watched, const std::string& program) {
  watched.report.write_end.reset();
  watched.starts.write_end.reset();
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO})
    ::close(fd);
  if (!is_limited(watched)) {
    static_cast<void>(os::send_signal(watched.pid, SIGKILL));
    fmt::print(
        stderr,
        "regatta: {}: did not load the hook, would not be limited, and was killed; if it uses "
        "no GPU itself, start it by another program: sh -c 'PROGRAM; exit $?'\n",
        printable(program, 200));
  }
  ::_exit(0);
}

}  // namespace

Status watch_hook_report(const std::string& program) {
  REGATTA_TRY(process, os::open_pidfd(::getpid()));
  REGATTA_TRY(report, os::make_pipe());
  REGATTA_TRY(starts, os::make_pipe());
  Watched watched{::getpid(), std::move(process), std::move(report), std::move(starts)};
  const pid_t child = ::fork();
  if (child < 0) return os::errno_error("cannot start a process");
  if (child == 0) {
    const pid_t watcher = ::fork();
    if (watcher == 0) watch(std::move(watched), program);
    ::_exit(watcher < 0 ? 1 : 0);
  }
  REGATTA_TRY(started, os::wait_for(child));
  if (!started.is_success())
    return Error{Code::kExhausted, "cannot start a process that waits for the hook's report"};
  const int fd = watched.report.write_end.release();
  // It stays open until the program starts.
  static_cast<void>(watched.starts.write_end.release());
  struct stat state {};
  if (::fstat(fd, &state) != 0 || ::fcntl(fd, F_SETFD, 0) != 0)
    return os::errno_error("cannot pass on a pipe");
  const std::string value = fmt::format("{}:{}", fd, state.st_ino);
  ::setenv(sharing::kHookReportVariable, value.c_str(), 1);
  return {};
}

}  // namespace regatta::cli
