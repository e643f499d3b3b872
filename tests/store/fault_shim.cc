// tests/store/fault_shim.cc: a library that is loaded before all others and makes a system call
// fail or ends the process before it.
//
// REGATTA_FAULT=ACTION:N acts at the N-th call (from 1):
//   kill   SIGKILL before a call that changes a file
//   tear   the same, but half of what a write was given is written first
//   sync   fsync() and fdatasync() fail with EIO from the N-th on
// REGATTA_FAULT=count:PATH writes the number of calls that change a file to PATH at exit.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

namespace {

struct Fault {
  std::string action;
  std::string argument;
  long number = 0;
  std::atomic<long> changes{0};
  std::atomic<long> syncs{0};

  Fault() {
    const char* text = std::getenv("REGATTA_FAULT");
    if (text == nullptr) return;
    const std::string whole = text;
    const std::size_t colon = whole.find(':');
    action = whole.substr(0, colon);
    argument = whole.substr(colon + 1);
    number = std::atol(argument.c_str());
  }
  ~Fault() {
    if (action != "count") return;
    if (std::FILE* file = std::fopen(argument.c_str(), "w")) {
      std::fprintf(file, "%ld\n", changes.load());
      std::fclose(file);
    }
  }
};

Fault& fault() {
  static Fault instance;
  return instance;
}

template <typename Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

// Whether this is the call at which the process ends.
bool is_last_change() {
  const long count = ++fault().changes;
  return (fault().action == "kill" || fault().action == "tear") && count == fault().number;
}

void end_before_change() {
  if (is_last_change()) ::raise(SIGKILL);
}

bool is_failing_sync() {
  const long count = ++fault().syncs;
  return fault().action == "sync" && count >= fault().number;
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* data, size_t size) {
  static const auto real = next(&write, "write");
  if (is_last_change()) {
    if (fault().action == "tear") real(fd, data, size / 2);
    ::raise(SIGKILL);
  }
  return real(fd, data, size);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  static const auto real = next(&pwrite, "pwrite");
  if (is_last_change()) {
    if (fault().action == "tear") real(fd, data, size / 2, offset);
    ::raise(SIGKILL);
  }
  return real(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}

int ftruncate(int fd, off_t size) noexcept {
  static const auto real = next(&ftruncate, "ftruncate");
  end_before_change();
  return real(fd, size);
}

int ftruncate64(int fd, off64_t size) noexcept {
  return ftruncate(fd, size);
}

int unlink(const char* path) noexcept {
  static const auto real = next(&unlink, "unlink");
  end_before_change();
  return real(path);
}

int rename(const char* from, const char* to) noexcept {
  static const auto real = next(&rename, "rename");
  end_before_change();
  return real(from, to);
}

int posix_fallocate(int fd, off_t offset, off_t size) {
  static const auto real = next(&posix_fallocate, "posix_fallocate");
  end_before_change();
  return real(fd, offset, size);
}

int fsync(int fd) {
  static const auto real = next(&fsync, "fsync");
  end_before_change();
  if (is_failing_sync()) {
    errno = EIO;
    return -1;
  }
  return real(fd);
}

int fdatasync(int fd) {
  static const auto real = next(&fdatasync, "fdatasync");
  end_before_change();
  if (is_failing_sync()) {
    errno = EIO;
    return -1;
  }
  return real(fd);
}

}  // extern "C"
