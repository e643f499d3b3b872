#include <cctype>
#include <cstddef>
#include <system_error>

#include "regatta/base/os/unique_fd.h"

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
  std::string text = std::generic_category().message(number);
  // "No such file": a part of a sentence here; "RPC ..." stays.
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() > 1 && std::islower(byte(1)) != 0)
    text[0] = static_cast<char>(std::tolower(byte(0)));
  return text;
}

}  // namespace regatta::os
