// store/internal/folder_sync.h: fsync() of a file or folder by its path: after a rename or a new
// entry the folder has to be on disk, too. Source: fsync(2).
#pragma once

#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::store {

// Not for the file of an open store: closing a descriptor of it drops the process's lock.
inline Status synchronize_path(const std::string& path) {
  const os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0) return os::errno_error(path);
  return {};
}

}  // namespace regatta::store
