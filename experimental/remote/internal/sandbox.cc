#include "experimental/remote/internal/sandbox.h"

#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

#include <asm/sockios.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kProcessor = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kProcessor = AUDIT_ARCH_AARCH64;
#else
#error "internal/sandbox.cc: name this processor as audit.h does"
#endif

// A driver makes calls that nobody lists, so the filter names what is forbidden: other programs,
// other processes, the machine, and the network.
constexpr long kForbidden[] = {
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_process_madvise,
    SYS_kcmp,
    SYS_setpriority,
    SYS_ioprio_set,
    SYS_migrate_pages,
    // Namespaces, mounts, and other roots.
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    // The kernel and the machine.
    SYS_bpf,
    SYS_perf_event_open,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_syslog,
    SYS_quotactl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_fanotify_init,
    SYS_lookup_dcookie,
    SYS_personality,
    SYS_vhangup,
    // A connection from outside.
    SYS_listen,
    // Another user.
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_capset,
#if defined(__x86_64__)
    SYS_fork,
    SYS_vfork,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
#endif
};

constexpr std::uint32_t offset_of_argument(unsigned index) {
  // The lower half comes first on the processors above.
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * index);
}

constexpr std::uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;

class Filter {
 public:
  void load(std::size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  }
  void give(std::uint32_t verdict) { add(BPF_RET | BPF_K, verdict); }
  // The next instruction is skipped unless the loaded word is `value`.
  void if_equal(std::uint32_t value) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
  }
  void unless_equal(std::uint32_t value) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
  }
  void unless_any_set(std::uint32_t bits) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0));
  }
  void if_at_least(std::uint32_t value) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, 1));
  }

  // Three conditions on an argument of a call; the filter ends for that call.
  template <typename Check>
  void for_call(long call, Check&& check) {
    load(offsetof(seccomp_data, nr));
    const std::size_t jump = code_.size();
    code_.push_back({});
    check();
    const auto skipped = static_cast<std::uint8_t>(code_.size() - jump - 1);
    code_[jump] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, skipped);
  }

  // For all threads; a driver may have started some.
  Status install() {
    sock_fprog program{.len = static_cast<unsigned short>(code_.size()), .filter = code_.data()};
    const long result =
        ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
    if (result == 0) return {};
    const std::string what = "cannot give up the rights of a host process";
    if (result < 0) return os::errno_error(what);
    return Error{Code::kUnavailable, what + ": thread " + std::to_string(result) +
                                         " has a filter of system calls of its own"};
  }

 private:
  void add(int code, std::uint32_t value) {
    code_.push_back(BPF_STMT(static_cast<unsigned short>(code), value));
  }
  std::vector<sock_filter> code_;
};

// The first argument names a process: all host processes may be of one user.
enum class Zero : std::uint8_t { kIsOwn, kIsGroup };
void refuse_other_processes(Filter& filter, long call, Zero zero) {
  filter.for_call(call, [&] {
    filter.load(offset_of_argument(0));
    if (zero == Zero::kIsOwn) {
      filter.if_equal(0);
      filter.give(SECCOMP_RET_ALLOW);
    }
    filter.unless_equal(static_cast<std::uint32_t>(::getpid()));
    filter.give(kRefused);
    filter.give(SECCOMP_RET_ALLOW);
  });
}

// The second argument says what the call does.
void refuse_commands(Filter& filter, long call, std::initializer_list<std::uint32_t> commands) {
  filter.for_call(call, [&] {
    filter.load(offset_of_argument(1));
    for (const std::uint32_t command : commands) {
      filter.if_equal(command);
      filter.give(kRefused);
    }
    filter.give(SECCOMP_RET_ALLOW);
  });
}

void refuse_reaching_other_processes(Filter& filter) {
  for (const long call : {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo})
    refuse_other_processes(filter, call, Zero::kIsGroup);
  filter.if_equal(SYS_tkill);
  filter.give(kRefused);
  // The kernel sends SIGKILL at a limit of time, and any signal to a descriptor's owner.
  refuse_commands(filter, SYS_fcntl, {F_SETOWN, F_SETOWN_EX, F_SETSIG});
  refuse_commands(filter, SYS_ioctl, {FIOSETOWN, SIOCSPGRP});
  for (const long call : {SYS_prlimit64, SYS_sched_setaffinity, SYS_sched_setparam,
                          SYS_sched_setscheduler, SYS_sched_setattr, SYS_move_pages})
    refuse_other_processes(filter, call, Zero::kIsOwn);
}

Status install_filter() {
  Filter filter;
  filter.load(offsetof(seccomp_data, arch));
  filter.unless_equal(kProcessor);
  filter.give(SECCOMP_RET_KILL_PROCESS);
  filter.load(offsetof(seccomp_data, nr));
#if defined(__x86_64__)
  filter.if_at_least(0x40000000);  // the numbers of the x32 ABI
  filter.give(kRefused);
#endif
  for (const long call : kForbidden) {
    filter.if_equal(static_cast<std::uint32_t>(call));
    filter.give(kRefused);
  }
  // The C library then makes threads by clone(), whose flags a filter can see.
  filter.if_equal(SYS_clone3);
  filter.give(SECCOMP_RET_ERRNO | ENOSYS);
  filter.for_call(SYS_clone, [&] {
    filter.load(offset_of_argument(0));
    filter.unless_any_set(CLONE_THREAD);
    filter.give(kRefused);
    filter.give(SECCOMP_RET_ALLOW);
  });
  refuse_reaching_other_processes(filter);
  // The daemon's socket, and what RDMA devices are found by; connections come from the server.
  filter.for_call(SYS_socket, [&] {
    filter.load(offset_of_argument(0));
    filter.if_equal(AF_UNIX);
    filter.give(SECCOMP_RET_ALLOW);
    filter.if_equal(AF_NETLINK);
    filter.give(SECCOMP_RET_ALLOW);
    filter.give(kRefused);
  });
  filter.give(SECCOMP_RET_ALLOW);
  return filter.install();
}

Status become(const std::string& user) {
  REGATTA_TRY_DO(check_host_user(user));
  const passwd* const entry = ::getpwnam(user.c_str());
  if (::initgroups(user.c_str(), entry->pw_gid) != 0 ||
      ::setresgid(entry->pw_gid, entry->pw_gid, entry->pw_gid) != 0 ||
      ::setresuid(entry->pw_uid, entry->pw_uid, entry->pw_uid) != 0)
    return os::errno_error("cannot become " + user);
  return {};
}

}  // namespace

Status check_host_user(const std::string& user) {
  const passwd* const entry = ::getpwnam(user.c_str());
  if (entry != nullptr && entry->pw_uid != 0) return {};
  return Error{Code::kInvalidInput,
               "--user: " + user + (entry == nullptr ? ": there is no such user" : ": is root") +
                   "; name one that owns nothing on this machine"};
}

Status enter_sandbox(const std::string& user) {
  if (::geteuid() == 0) REGATTA_TRY_DO(become(user));
  // Other processes of this user cannot read its memory.
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return os::errno_error("cannot give up the rights of a host process");
  return install_filter();
}

}  // namespace regatta::remote
