#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace regatta::os {

Result<UniqueFd> open_network_namespace() {
  UniqueFd fd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("/proc/thread-self/ns/net");
  return fd;
}

Status enter_new_network_namespace() {
  if (::unshare(CLONE_NEWNET) != 0) return errno_error("new network namespace");
  return {};
}

Status enter_new_user_namespace() {
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
    Error error = errno_error("new user namespace");
    error.code = Code::kUnsupported;
    error.message += "; run as root, or allow user namespaces (sysctl user.max_user_namespaces)";
    return error;
  }
  // An ordinary user may map only itself, and only after giving up setgroups().
  REGATTA_TRY_DO(write_file("/proc/self/setgroups", "deny"));
  REGATTA_TRY_DO(write_file("/proc/self/uid_map", "0 " + user + " 1"));
  return write_file("/proc/self/gid_map", "0 " + group + " 1");
}

Status enter_network_namespace(const UniqueFd& fd) {
  if (::setns(fd.get(), CLONE_NEWNET) != 0) return errno_error("enter network namespace");
  return {};
}

Result<unsigned long long> network_namespace_cookie() {
  const UniqueFd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!any) return errno_error("socket");
  unsigned long long cookie = 0;
  socklen_t size = sizeof cookie;
  if (::getsockopt(any.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) {
    return errno_error("identity of the network namespace");
  }
  return cookie;
}

Result<unsigned long long> network_namespace_cookie_of(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/ns/";
  const UniqueFd network(::open((folder + "net").c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd user(::open((folder + "user").c_str(), O_RDONLY | O_CLOEXEC));
  if (!network || !user) return errno_error(folder);
  REGATTA_TRY(pipe, make_pipe());
  // A user namespace can be entered only by a process of one thread: a fresh child.
  const pid_t child = ::fork();
  if (child < 0) return errno_error("fork");
  if (child == 0) {
    // Fails harmlessly when the child is in that user namespace already.
    static_cast<void>(::setns(user.get(), CLONE_NEWUSER) == 0);
    unsigned long long cookie = 0;
    socklen_t size = sizeof cookie;
    const int any =
        ::setns(network.get(), CLONE_NEWNET) == 0 ? ::socket(AF_INET, SOCK_DGRAM, 0) : -1;
    if (any < 0 || ::getsockopt(any, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0) ::_exit(1);
    ::_exit(::write(pipe.write_end.get(), &cookie, sizeof cookie) == sizeof cookie ? 0 : 1);
  }
  pipe.write_end.reset();
  unsigned long long cookie = 0;
  const ssize_t count = ::read(pipe.read_end.get(), &cookie, sizeof cookie);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (count == static_cast<ssize_t>(sizeof cookie)) return cookie;
  return Error{Code::kUnsupported,
               "process " + std::to_string(pid) + ": its network namespace cannot be entered"};
}

Result<unsigned long long> namespace_inode(const UniqueFd& fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("inode of the namespace");
  return static_cast<unsigned long long>(info.st_ino);
}

Result<NetworkNamespaceScope> NetworkNamespaceScope::enter(const UniqueFd& fd) {
  REGATTA_TRY(home, open_network_namespace());
  REGATTA_TRY_DO(enter_network_namespace(fd));
  return NetworkNamespaceScope(std::move(home));
}

NetworkNamespaceScope::~NetworkNamespaceScope() {
  if (home_) REGATTA_CHECK(::setns(home_.get(), CLONE_NEWNET) == 0);
}

}  // namespace regatta::os
