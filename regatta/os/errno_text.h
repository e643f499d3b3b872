// os/errno_text.h: an Error out of a failed system call.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "regatta/core/result.h"

namespace regatta::os {

// "what: reason", with the Code that fits `number`: ENOENT and ESRCH kNotFound, EEXIST and EBUSY
// kConflict, EPERM, EACCES and ENOSYS kUnsupported, EMFILE, ENOMEM and ENOSPC kExhausted, EINVAL
// kInvalidInput, ETIMEDOUT kTimeout, else kUnavailable.
Error errno_error(std::string_view what, int number = errno);

// The C library's text of `number`, safe from any thread.
std::string errno_text(int number = errno);

}  // namespace regatta::os
