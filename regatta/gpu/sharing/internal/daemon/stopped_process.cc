#include "regatta/gpu/sharing/internal/daemon/stopped_process.h"

#include <string>

#include "regatta/base/os/file.h"

namespace regatta::sharing {
namespace {

std::string read_fact(pid_t pid, const char* name) {
  const auto text = os::read_file("/proc/" + std::to_string(pid) + "/" + name);
  return text ? *text : std::string();
}

}  // namespace

bool is_stopped_process(pid_t pid) {
  const std::string stat = read_fact(pid, "stat");
  // The name is in parentheses and may hold any letter, so the last one ends it.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  const char state = stat[name_end + 2];
  if (state == 'T' || state == 't') return true;
  const std::string waits_in = read_fact(pid, "wchan");
  return waits_in.find("freezer") != std::string::npos ||
         waits_in.find("refrigerator") != std::string::npos;
}

}  // namespace regatta::sharing
