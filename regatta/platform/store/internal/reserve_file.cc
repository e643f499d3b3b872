#include "regatta/platform/store/internal/reserve_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::store {

Result<Bytes> free_space(const std::string& folder) {
  struct statvfs status {};
  if (::statvfs(folder.c_str(), &status) != 0) return os::errno_error(folder);
  return Bytes{static_cast<long long>(status.f_bavail) * static_cast<long long>(status.f_frsize)};
}

bool ReserveFile::is_there() const {
  if (size_.value == 0) return true;
  struct stat status {};
  constexpr long long kBlock = 512;  // the unit of st_blocks, whatever the file system has
  return ::stat(path().c_str(), &status) == 0 && status.st_blocks * kBlock >= size_.value;
}

void ReserveFile::make_when_possible() const {
  if (is_there()) return;
  release();
  const Result<Bytes> free = free_space(folder_);
  if (!free || free->value < 3 * size_.value) return;
  const os::UniqueFd file(::open(path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (file && ::posix_fallocate(file.get(), 0, size_.value) != 0) release();
}

bool ReserveFile::release() const {
  return size_.value != 0 && ::unlink(path().c_str()) == 0;
}

}  // namespace regatta::store
