// sharing/internal/daemon/test_refusal.h: a call of the kernel that it refuses, as an older one
// does, or one with less: for a child of fork(), since it stays so. Source: seccomp(2), with the
// filters of linux/filter.h.
#pragma once

#include <array>
#include <cstddef>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

namespace regatta::sharing {

// Whether this kernel can be told so.
inline bool can_refuse() {
  return ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
}

// From now on the call of that number fails with `error`, here and in children. False: it does not.
inline bool refuse(unsigned call, unsigned error) {
  std::array<sock_filter, 4> steps = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{.len = steps.size(), .filter = steps.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

}  // namespace regatta::sharing
