#include "regatta/app/cli/internal/gpu_hook_folder.h"

#include <cstdlib>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>

#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/hook_loading.h"

namespace regatta::cli {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Status load_hook(const std::string& daemon_socket) {
  REGATTA_TRY(folder, sharing::find_hook_folder(daemon_socket));
  for (const auto& [name, value] :
       sharing::hook_variables(folder, variable("LD_PRELOAD"), variable("LD_LIBRARY_PATH")))
    ::setenv(name.c_str(), value.c_str(), 1);
  return {};
}

// The kernel tells the loader of a program with file capabilities to trust nobody even where it
// grants none of them; not so where the whole mount has none. Source: mount_setattr(2),
// capabilities(7), ld.so(8).
static bool take_capabilities_from_mounts() {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID;
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0 &&
         ::mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attributes, sizeof attributes) == 0;
}

Status forbid_new_privileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return os::errno_error("cannot forbid new privileges");
  // Another user than root may not do it, nor root in a container: docs/gpu-sharing.md.
  static_cast<void>(take_capabilities_from_mounts());
  return {};
}

}  // namespace regatta::cli
