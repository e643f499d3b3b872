// container/internal/user_mounts.h: mounts that root makes for a user in a mount namespace of its
// own: a path is opened with the rights of the user, and what was opened is mounted, so that a link
// that changes in between reaches nothing else.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::container {

struct UserRights {
  unsigned uid = 0;
  unsigned gid = 0;
  std::vector<unsigned> groups;
};

// This process, which has one thread, sees its mounts alone from now on. kUnsupported where it may
// not.
Status enter_mount_namespace();

// A descriptor (O_PATH) of what the user reaches by the path. kInvalidInput names the path.
// Source: setfsuid(2).
Result<os::UniqueFd> open_as_user(const std::string& path, const UserRights& user);

// Mounts it at `target`, which is made as a folder or file.
Status mount_opened(const os::UniqueFd& opened, const std::string& target);

// FOLDER/root: `lower` with changes that go to FOLDER. kUnsupported where the kernel cannot.
// Source: Linux, Documentation/filesystems/overlayfs.rst.
Status mount_changeable(const std::string& lower, const std::string& folder);

// Nothing but the folder can be written by this process any more. Source: mount_setattr(2).
Status make_all_read_only_but(const std::string& folder);

}  // namespace regatta::container
