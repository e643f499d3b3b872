#include "regatta/base/os/memory.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"

namespace regatta::os {
namespace {

// The number at the begin of `text`, behind blanks; none: "max".
std::optional<long long> number_in(std::string_view text) {
  text = trim(text);
  long long number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::optional<long long> number_of(const std::string& path) {
  const auto text = read_file(path);
  return text ? number_in(*text) : std::nullopt;
}

// "MemAvailable:   123 kB".
std::optional<long long> left_on_machine(const std::string& root) {
  const auto text = read_file(root + "/proc/meminfo");
  if (!text) return std::nullopt;
  constexpr std::string_view kName = "MemAvailable:";
  const std::size_t at = text->find(kName);
  if (at == std::string::npos) return std::nullopt;
  const auto kibibytes = number_in(std::string_view(*text).substr(at + kName.size()));
  return kibibytes ? std::optional(*kibibytes * 1024) : std::nullopt;
}

// Behind `name` at the begin of a line of a group's statistics.
long long statistic(const std::string& path, const std::string& name) {
  const auto text = read_file(path);
  if (!text) return 0;
  const std::string all = "\n" + *text;
  const std::size_t at = all.find("\n" + name + " ");
  if (at == std::string::npos) return 0;
  return number_in(std::string_view(all).substr(at + name.size() + 2)).value_or(0);
}

// A control group's limit and use; inactive pages of files count as free.
struct Group {
  std::string most;
  std::string used;
  std::string statistics;
  std::string unused_files;
};

std::optional<long long> left_of(const Group& group) {
  const auto most = number_of(group.most);
  const auto used = number_of(group.used);
  if (!most || !used) return std::nullopt;
  return std::max(0LL, *most - *used + statistic(group.statistics, group.unused_files));
}

// Pages of the address space: the first number of statm.
std::optional<long long> left_of_limit(const std::string& root) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const long long pages = number_of(root + "/proc/self/statm").value_or(0);
  return std::max(0LL, static_cast<long long>(limit.rlim_cur) - pages * ::sysconf(_SC_PAGESIZE));
}

}  // namespace

Bytes free_memory(const std::string& root) {
  const std::string group = root + "/sys/fs/cgroup/";
  long long least = std::numeric_limits<long long>::max();
  for (const auto& left :
       {left_on_machine(root),
        left_of({group + "memory.max", group + "memory.current", group + "memory.stat",
                 "inactive_file"}),
        left_of({group + "memory/memory.limit_in_bytes", group + "memory/memory.usage_in_bytes",
                 group + "memory/memory.stat", "total_inactive_file"}),
        left_of_limit(root)})
    least = std::min(least, std::max(1LL, left.value_or(least)));
  return {least == std::numeric_limits<long long>::max() ? 0 : least};
}

Bytes resident_memory(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/statm");
  if (!text) return Bytes{0};
  const std::vector<std::string> fields = split(*text, ' ');
  const long long pages = fields.size() < 2 ? 0 : parse_number<long long>(fields[1]).value_or(0);
  return Bytes{pages * ::sysconf(_SC_PAGESIZE)};
}

}  // namespace regatta::os
