#include "regatta/gpu/sharing/internal/daemon/stopped_process.h"

#include <string>

#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::sharing {

bool is_stopped_process(pid_t pid) {
  const auto process = os::read_process(pid);
  if (!process) return false;
  if (process->state == 'T' || process->state == 't') return true;
  const auto waits_in = os::read_file("/proc/" + std::to_string(pid) + "/wchan");
  return waits_in && (waits_in->find("freezer") != std::string::npos ||
                      waits_in->find("refrigerator") != std::string::npos);
}

}  // namespace regatta::sharing
