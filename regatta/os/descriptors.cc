#include "regatta/os/descriptors.h"

#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

#include <sys/resource.h>

#include "regatta/os/errno_text.h"

namespace regatta::os {
namespace {

std::size_t count_open() {
  std::error_code error;
  const std::filesystem::directory_iterator all("/proc/self/fd", error);
  return error ? 0 : static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace

Status allow_descriptors(std::size_t count) {
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

}  // namespace regatta::os
