#include "regatta/network/lab/internal/remove.h"

#include <csignal>
#include <string>

#include <fmt/core.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/network/lab/internal/processes.h"

namespace regatta::lab {
namespace {

constexpr Seconds kPatience{1.0};

// After a reboot only the folder can be left, and the process ids belong to strangers.
bool is_of_this_boot(const LabState& state) {
  const auto boot_id = os::boot_id();
  return boot_id && *boot_id == state.boot_id;
}

// Ends the holder by its identity and waits until it is gone: then the kernel has closed the
// namespaces, and with the last process of each its cables go.
Status end_holder(const LabState& state) {
  const Seconds end = os::monotonic_now() + Seconds{5};
  while (holder_is_alive(state)) {
    ::kill(state.info.holder, SIGKILL);
    if (os::monotonic_now() > end) {
      return Error{Code::kTimeout, fmt::format("lab {}: its holder (process {}) does not end",
                                               state.info.name, state.info.holder)};
    }
    os::sleep_for(Seconds{0.005});
  }
  return {};
}

}  // namespace

Status remove_contents(const LabState& state) {
  if (is_of_this_boot(state)) {
    REGATTA_TRY_DO(end_processes(state, kPatience));
    if (!state.cgroup.empty()) REGATTA_TRY_DO(os::remove_cgroup(state.cgroup));
  }
  return os::remove_tree(state.info.folder);
}

Status remove_lab(const LabState& state) {
  if (is_of_this_boot(state)) {
    // The processes first: while the holder lives, the namespaces are surely the lab's.
    REGATTA_TRY_DO(end_processes(state, kPatience));
    REGATTA_TRY_DO(end_holder(state));
  }
  return remove_contents(state);
}

void reap_dead_labs() {
  for (const std::string& name : state_names()) {
    const auto state = load_state(name);
    Status status;
    if (state && holder_is_alive(*state)) continue;
    if (state) {
      status = remove_lab(*state);
    } else if (const auto folder = lab_folder(name); folder) {
      status = os::remove_tree(*folder);  // died before it could write anything down
    }
    if (!status) os::log_warning("reaping a dead lab: " + status.error().message);
  }
}

}  // namespace regatta::lab
