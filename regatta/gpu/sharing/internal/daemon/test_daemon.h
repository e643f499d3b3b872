// sharing/internal/daemon/test_daemon.h: for tests and benchmarks: a daemon as a process that can
// be killed and started again, and processes of tenants.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/daemon.h"
#include "regatta/gpu/sharing/internal/client/client.h"

namespace regatta::sharing {

inline constexpr Seconds kTimeout{10.0};
inline constexpr std::uint64_t kMiB = 1ULL << 20;

// In processes of tenants: what does not hold is said and ends them.
#define EXPECT_IN_TENANT(condition)                                                \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                                    \
    }                                                                              \
  } while (false)

// Forks a process that runs `body` and ends with what it returns; it dies with this one.
inline pid_t start_process(const std::function<int()>& body) {
  std::fflush(nullptr);  // what is not yet written would be written by both
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int status = body();
  std::fflush(nullptr);
  ::_exit(status);
}

inline int wait_status(pid_t pid) {
  const auto state = os::wait_for(pid, Seconds{60.0});
  if (state) return state->shell_status();
  ::kill(pid, SIGKILL);
  static_cast<void>(os::wait_for(pid).has_value());
  return -1;
}

// A T that this process and those it forks share.
template <typename T>
class Shared {
 public:
  Shared() {
    memory_ = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) std::abort();
    new (memory_) T();
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { ::munmap(memory_, sizeof(T)); }
  T* operator->() const { return static_cast<T*>(memory_); }
  T& operator*() const { return *static_cast<T*>(memory_); }

 private:
  void* memory_ = nullptr;
};

class TestDaemon {
 public:
  // `options` but for the folders, which are the test's own, and the GPUs.
  explicit TestDaemon(std::vector<Bytes> gpus = {Bytes{0}}, DaemonOptions options = {})
      : folder_(os::TempFolder::create("vgpu").value()), options_(std::move(options)) {
    options_.gpus = std::move(gpus);
    options_.state = state();
    options_.socket = socket();
    start();
  }
  TestDaemon(const TestDaemon&) = delete;
  TestDaemon& operator=(const TestDaemon&) = delete;
  ~TestDaemon() { kill(); }

  std::string socket() const { return folder_.path() + "/socket"; }
  std::string state() const { return folder_.path() + "/state"; }

  void start() {
    pid_ = start_process([&] {
      os::set_log_level(os::LogLevel::kWarning);
      static std::atomic<bool> stop = false;
      const Status status = serve(options_, stop);
      if (!status) std::fprintf(stderr, "test daemon: %s\n", status.error().message.c_str());
      return 1;
    });
    wait_for_answer();
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    static_cast<void>(os::wait_for(pid_).has_value());
    pid_ = 0;
  }

  // It hears nothing until it goes on.
  void stop() const { ::kill(pid_, SIGSTOP); }
  void go_on() const { ::kill(pid_, SIGCONT); }

  Result<nlohmann::json> query(const nlohmann::json& request) const {
    REGATTA_TRY(text, send_control_request(socket(), request.dump()));
    return nlohmann::json::parse(text);
  }

  // The only tenant's figure of GPU 0: limit_bytes, used_bytes or spare_bytes; -1: there is none.
  long long memory(const char* what) const {
    const auto listing = query({{"request", "ps"}});
    if (!listing || (*listing)["tenants"].empty()) return -1;
    const auto& memory = (*listing)["tenants"][0]["memory"];
    return memory.empty() ? 0 : memory[0][what].get<long long>();
  }

  // Starts a process that makes the tenant `name` and goes on as its first one, with the descriptor
  // of the tenant's page.
  pid_t start_tenant(const std::string& name, Bytes memory,
                     const std::function<int(int page)>& body,
                     const nlohmann::json& more = nlohmann::json::object()) const {
    return start_process([&, this] {
      os::UniqueFd page;
      nlohmann::json request{{"request", "join"},
                             {"name", name},
                             {"memory", {{"0", memory.value}}},
                             {"compute_ppm", 100'000}};
      request.update(more);
      const auto answer = send_control_request(socket(), request.dump(), &page);
      if (!answer) {
        std::fprintf(stderr, "tenant: %s\n", answer.error().message.c_str());
        return 99;
      }
      return body(page.get());
    });
  }

 private:
  void wait_for_answer() const {
    const Seconds end = os::monotonic_now() + Seconds{10.0};
    while (!query({{"request", "policy"}}) && os::monotonic_now() < end)
      os::sleep_for(Seconds{0.001});
  }

  os::TempFolder folder_;
  DaemonOptions options_;
  pid_t pid_ = 0;
};

}  // namespace regatta::sharing
