// os/errno_text.h: an Error out of a failed system call.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta::os {

// "what: reason", with the Code that fits `number`: what is missing kNotFound, what is in the way
// kConflict, what is not allowed or not built in kUnsupported, what is used up kExhausted, EINVAL
// kInvalidInput, ETIMEDOUT kTimeout, else kUnavailable.
Error errno_error(std::string_view what, int number = errno);

// The C library's text of `number` with a small first letter, safe from any thread.
std::string errno_text(int number = errno);

}  // namespace regatta::os
