// experimental/remote/internal/sandbox.h: what a host process gives up before it reads a byte of a
// program: its user, new privileges, and the system calls that a process needs to get at others.
// Source: seccomp(2), PR_SET_NO_NEW_PRIVS(2const).
#pragma once

#include <string>

#include "regatta/base/core/result.h"

namespace regatta::remote {

// kInvalidInput: there is no such user, or it is root.
Status check_host_user(const std::string& user);

// For all threads of the process, for good. As root it becomes `user`, with that user's groups; as
// another user it stays what it is. Errors as check_host_user(); kUnavailable: a thread has a
// filter of its own.
Status enter_sandbox(const std::string& user);

}  // namespace regatta::remote
