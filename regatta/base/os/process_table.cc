#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::os {

Result<ProcessEntry> read_process(pid_t pid, const std::string& proc) {
  const std::string path = proc + "/" + std::to_string(pid) + "/stat";
  REGATTA_TRY(text, read_file(path));
  // "pid (command) state ppid ...": the command may hold spaces and brackets, so count from the
  // last bracket on.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 > text.size()) {
    return Error{Code::kUnavailable, path + ": not as proc(5) describes it"};
  }
  const auto fields = split(std::string_view(text).substr(close + 2), ' ');
  constexpr std::size_t kState = 0;
  constexpr std::size_t kParent = 1;
  constexpr std::size_t kStartTime = 19;  // field 22 of the line
  if (fields.size() <= kStartTime || fields[kState].empty()) {
    return Error{Code::kUnavailable, path + ": not as proc(5) describes it"};
  }
  ProcessEntry entry;
  entry.pid = pid;
  entry.command = text.substr(open + 1, close - open - 1);
  entry.state = fields[kState][0];
  entry.parent = static_cast<pid_t>(std::strtol(fields[kParent].c_str(), nullptr, 10));
  entry.start_time = std::strtoull(fields[kStartTime].c_str(), nullptr, 10);
  return entry;
}

std::vector<ProcessEntry> list_processes(const std::string& proc) {
  std::vector<ProcessEntry> entries;
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(proc, error)) {
    const std::string name = item.path().filename();
    if (!std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); })) {
      continue;
    }
    auto entry = read_process(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)), proc);
    if (entry) entries.push_back(*std::move(entry));
  }
  return entries;
}

bool is_alive(pid_t pid, unsigned long long start_time, const std::string& proc) {
  const auto entry = read_process(pid, proc);
  return entry && entry->start_time == start_time && entry->state != 'Z' && entry->state != 'X';
}

Seconds age_of(const ProcessEntry& process) {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  const double since_boot =
      static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  const double started =
      static_cast<double>(process.start_time) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return Seconds{std::max(0.0, since_boot - started)};
}

std::optional<unsigned long long> network_namespace_of(pid_t pid, const std::string& proc) {
  const std::string path = proc + "/" + std::to_string(pid) + "/ns/net";
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_ino;
}

}  // namespace regatta::os
