// sharing/internal/page_file.h: the memory files of the pages that the daemon makes, as it and the
// programs recognise them: their seals and their length.
#pragma once

#include <optional>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>

#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace regatta::sharing {

// Nobody can shorten a page: access to what is gone would end a process.
inline constexpr int kPageSeals = F_SEAL_SHRINK | F_SEAL_GROW;
// Nor does anybody but the daemon write to a tenant's.
inline constexpr int kTenantPageSeals = kPageSeals | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE;

// The facts of a file with these seals and the length of a page; none of any other file.
inline std::optional<struct stat> page_file_status(int fd, int seals) {
  struct stat status {};
  const int found = ::fcntl(fd, F_GET_SEALS);
  if (found < 0 || (found & seals) != seals || ::fstat(fd, &status) != 0 ||
      status.st_size != REGATTA_PAGE_SIZE)
    return std::nullopt;
  return status;
}

// Opens the file of a descriptor anew, without waiting for a process that has a lease on it
// (fcntl(2), F_SETLEASE). One of O_PATH finds the file without opening it.
inline os::UniqueFd open_again(const os::UniqueFd& fd, int flags) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  return os::UniqueFd(::open(path.c_str(), flags | O_NONBLOCK));  // NOLINT(android-cloexec-open)
}

}  // namespace regatta::sharing
