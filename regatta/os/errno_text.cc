#include "regatta/os/errno_text.h"

#include <system_error>

namespace regatta::os {
namespace {

Code code_of(int number) {
  switch (number) {
    case ENOENT:
    case ESRCH:
    case ENODEV:
      return Code::kNotFound;
    case EEXIST:
    case EBUSY:
    case ENOTEMPTY:
      return Code::kConflict;
    case EPERM:
    case EACCES:
    case ENOSYS:
    case EOPNOTSUPP:
    case EROFS:
      return Code::kUnsupported;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
      return Code::kExhausted;
    case EINVAL:
      return Code::kInvalidInput;
    case ETIMEDOUT:
      return Code::kTimeout;
    default:
      return Code::kUnavailable;
  }
}

}  // namespace

Error errno_error(std::string_view what, int number) {
  return Error{code_of(number), std::string(what) + ": " + errno_text(number)};
}

std::string errno_text(int number) {
  return std::generic_category().message(number);
}

}  // namespace regatta::os
