#include "regatta/platform/container/internal/user_mounts.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"

namespace regatta::container {
namespace {

Error cannot(const std::string& what) {
  return {Code::kUnsupported, os::errno_error(what).message};
}

}  // namespace

Status enter_mount_namespace() {
  if (::unshare(CLONE_NEWNS) != 0) return cannot("mount namespace");
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return cannot("mounts");
  return {};
}

Result<os::UniqueFd> open_as_user(const std::string& path, const UserRights& user) {
  const std::vector<gid_t> groups(user.groups.begin(), user.groups.end());
  if (::setgroups(groups.size(), groups.data()) != 0) return cannot("groups of the user");
  ::setfsgid(user.gid);
  ::setfsuid(user.uid);  // takes the rights over files from root, too
  const bool is_user = ::setfsuid(static_cast<uid_t>(-1)) == static_cast<int>(user.uid);
  os::UniqueFd opened;
  if (is_user) opened.reset(::open(path.c_str(), O_PATH | O_CLOEXEC));
  const Error error = os::errno_error(printable(path, 200));
  ::setfsuid(0);
  ::setfsgid(0);
  if (::setgroups(0, nullptr) != 0) return cannot("groups");
  if (!opened)
    return Error{Code::kInvalidInput,
                 error.message + "; give a path of this node that the job's user reaches"};
  return opened;
}

Status mount_opened(const os::UniqueFd& opened, const std::string& target) {
  struct stat state {};
  if (::fstat(opened.get(), &state) != 0) return cannot(target);
  if (S_ISDIR(state.st_mode))
    REGATTA_TRY_DO(os::make_folder(target));
  else
    REGATTA_TRY_DO(os::write_file(target, ""));
  const std::string source = fmt::format("/proc/self/fd/{}", opened.get());
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return cannot(target);
  return {};
}

Status mount_changeable(const std::string& lower, const std::string& folder) {
  if ((lower + folder).find_first_of(":,\\") != std::string::npos)
    return Error{Code::kUnsupported,
                 folder +
                     ": an overlay takes no path with ':', ',' or '\\'; give the agent another "
                     "--state"};
  for (const char* part : {"/upper", "/work", "/root"})
    REGATTA_TRY_DO(os::make_folder(folder + part));
  const std::string options =
      fmt::format("lowerdir={},upperdir={}/upper,workdir={}/work", lower, folder, folder);
  if (::mount("overlay", (folder + "/root").c_str(), "overlay", 0, options.c_str()) != 0)
    return cannot(folder + ": overlay");
  return {};
}

Status make_all_read_only_but(const std::string& folder) {
  if (::mount(folder.c_str(), folder.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
    return cannot(folder);
  struct mount_attr read_only {};
  read_only.attr_set = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof read_only) != 0)
    return cannot("read-only mounts");
  struct mount_attr writable {};
  writable.attr_clr = MOUNT_ATTR_RDONLY;
  if (::mount_setattr(AT_FDCWD, folder.c_str(), 0, &writable, sizeof writable) != 0)
    return cannot(folder);
  return {};
}

}  // namespace regatta::container
