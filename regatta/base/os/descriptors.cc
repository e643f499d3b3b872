#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

std::size_t count_open() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  return error ? 0 : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

Status raise_descriptor_limit(std::size_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return errno_error("ask for the limit of descriptors");
  const std::size_t wanted = count_open() + count;
  if (limit.rlim_cur >= wanted) return {};
  if (limit.rlim_max < wanted)
    return Error{Code::kExhausted, std::to_string(wanted) + " file descriptors are needed and " +
                                       std::to_string(limit.rlim_max) +
                                       " allowed; raise the hard limit (ulimit -Hn)"};
  limit.rlim_cur = wanted;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return errno_error("raise the limit of descriptors");
  return {};
}

Status close_descriptors_from(int first) {
  if (first < 0) {
    return Error{Code::kInvalidInput, "descriptors from " + std::to_string(first) +
                                          " on cannot be closed; the first one is 0"};
  }
  if (::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, 0U) != 0)
    return errno_error("close the descriptors from " + std::to_string(first) + " on");
  return {};
}

}  // namespace regatta::os
