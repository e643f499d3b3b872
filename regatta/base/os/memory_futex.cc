#include <climits>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "regatta/base/os/memory.h"

namespace regatta::os {

void futex_wait(const void* word, std::uint32_t value, std::uint64_t limit_ns) {
  const timespec limit{static_cast<time_t>(limit_ns / 1'000'000'000U),
                       static_cast<long>(limit_ns % 1'000'000'000U)};
  ::syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

void futex_wake_one(const void* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void futex_wake_all(const void* word) {
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace regatta::os
