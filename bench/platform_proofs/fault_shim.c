// A library for LD_PRELOAD that harms the program that it is loaded into, for proofs:
//   PROOF_KILL_AT=N      SIGKILL to itself before its N-th call that others can see the effect of
//   PROOF_CALLS=FILE     the number of these calls so far, 8 bytes
//   PROOF_SYNC_ERROR=FILE   while FILE exists, fsync() and fdatasync() fail with EIO
// Programs that it starts are not harmed: they count for themselves only when they are given the
// variables, and the first process takes them out of its environment.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static _Atomic unsigned long own_calls;
static _Atomic unsigned long* calls = &own_calls;
static unsigned long kill_at;
static char* sync_error;
static pid_t harmed_process;

__attribute__((constructor)) static void read_settings(void) {
  harmed_process = getpid();
  const char* at = getenv("PROOF_KILL_AT");
  if (at) kill_at = strtoul(at, NULL, 10);
  const char* error = getenv("PROOF_SYNC_ERROR");
  if (error) sync_error = strdup(error);
  const char* file = getenv("PROOF_CALLS");
  if (file) {
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && syscall(SYS_ftruncate, fd, 8) == 0) {
      void* page = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (page != MAP_FAILED) calls = page;
    }
    if (fd >= 0) syscall(SYS_close, fd);
  }
  unsetenv("LD_PRELOAD");
  unsetenv("PROOF_KILL_AT");
  unsetenv("PROOF_CALLS");
  unsetenv("PROOF_SYNC_ERROR");
}

// Counts in the process that was started, not in a child between fork and exec.
static void count(void) {
  const int saved = errno;
  if (syscall(SYS_getpid) == harmed_process && atomic_fetch_add(calls, 1) + 1 == kill_at)
    syscall(SYS_kill, harmed_process, SIGKILL);
  errno = saved;
}

static int fails_to_sync(void) {
  const int saved = errno;
  const int fails = sync_error && syscall(SYS_access, sync_error, F_OK) == 0;
  errno = fails ? EIO : saved;
  return fails;
}

#define REAL(result, name, ...)       \
  static result (*real)(__VA_ARGS__); \
  if (!real) *(void**)&real = dlsym(RTLD_NEXT, #name)

#define COUNTED(result, name, parameters, ...)    \
  result name parameters {                        \
    REAL(result, name, PARAMETERS_OF parameters); \
    count();                                      \
    return real(__VA_ARGS__);                     \
  }
#define PARAMETERS_OF(...) __VA_ARGS__

COUNTED(ssize_t, write, (int fd, const void* data, size_t size), fd, data, size)
COUNTED(ssize_t, pwrite, (int fd, const void* data, size_t size, off_t at), fd, data, size, at)
COUNTED(ssize_t, pwrite64, (int fd, const void* data, size_t size, off64_t at), fd, data, size, at)
COUNTED(ssize_t, writev, (int fd, const struct iovec* parts, int number), fd, parts, number)
COUNTED(ssize_t, send, (int fd, const void* data, size_t size, int flags), fd, data, size, flags)
COUNTED(ssize_t, sendmsg, (int fd, const struct msghdr* message, int flags), fd, message, flags)
COUNTED(int, rename, (const char* from, const char* to), from, to)
COUNTED(int, unlink, (const char* path), path)
COUNTED(int, mkdir, (const char* path, mode_t mode), path, mode)
COUNTED(int, rmdir, (const char* path), path)
COUNTED(int, ftruncate, (int fd, off_t size), fd, size)
COUNTED(int, ftruncate64, (int fd, off64_t size), fd, size)
COUNTED(pid_t, fork, (void), )
COUNTED(int, kill, (pid_t pid, int number), pid, number)

int fsync(int fd) {
  REAL(int, fsync, int);
  count();
  return fails_to_sync() ? -1 : real(fd);
}

int fdatasync(int fd) {
  REAL(int, fdatasync, int);
  count();
  return fails_to_sync() ? -1 : real(fd);
}
