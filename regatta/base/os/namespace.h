// os/namespace.h: network and user namespaces of the calling thread or process.
// Source: network_namespaces(7), user_namespaces(7), setns(2).
#pragma once

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

// The network namespace of the calling thread; the descriptor keeps it alive.
Result<UniqueFd> open_network_namespace();

// Moves the calling thread into a new, empty network namespace. kUnsupported without the right to.
Status enter_new_network_namespace();

// Moves the calling process, which must have one thread, into a new user namespace where the
// caller is root, and into a new network namespace that it owns. kUnsupported when the system
// forbids user namespaces to ordinary users.
Status enter_new_user_namespace();

// Moves the calling thread into the network namespace `fd`.
Status enter_network_namespace(const UniqueFd& fd);

// Identity of the calling thread's network namespace; never used again before the next boot, as
// inodes are. Source: SO_NETNS_COOKIE, Linux 5.14.
Result<unsigned long long> network_namespace_cookie();

// The same of process `pid`'s namespace; may enter that namespace in a short-lived child.
// kUnsupported without the right to.
Result<unsigned long long> network_namespace_cookie_of(pid_t pid);

// Inode of the open namespace, as network_namespace_of() in proc_table.h gives it.
Result<unsigned long long> namespace_inode(const UniqueFd& fd);

// Keeps the calling thread in another network namespace for a while. Must be destroyed by the
// thread that made it.
class NetworkNamespaceScope {
 public:
  static Result<NetworkNamespaceScope> enter(const UniqueFd& fd);
  NetworkNamespaceScope(NetworkNamespaceScope&&) noexcept = default;
  NetworkNamespaceScope& operator=(NetworkNamespaceScope&&) noexcept = default;
  ~NetworkNamespaceScope();  // goes back; a failure is a broken invariant

 private:
  explicit NetworkNamespaceScope(UniqueFd home) : home_(std::move(home)) {}
  UniqueFd home_;
};

}  // namespace regatta::os
