// What calls, launches and copies cost through the driver that this program finds, and what a bare
// TCP connection of this machine costs: run it alone, and under regatta gpu pool run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "regatta/vgpu/remote/frames.h"
#include "regatta/vgpu/remote/socket.h"

namespace {

using namespace regatta::vgpu::remote;  // NOLINT(google-build-using-namespace): a program of its
                                        // own
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The median of the rounds, in the unit that `scale` makes of seconds.
void report(const char* what, const char* unit, const std::function<double()>& round) {
  std::vector<double> values;
  for (int i = 0; i < kRounds; ++i)
    values.push_back(round());
  std::sort(values.begin(), values.end());
  std::printf("%-44s %10.2f %s  (%.2f to %.2f)\n", what, values[kRounds / 2], unit, values.front(),
              values.back());
  std::fflush(stdout);
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "remote_bench: %s\n", what);
  std::exit(1);
}
void need(CUresult status, const char* what) {
  if (status != CUDA_SUCCESS) fail(what);
}

void* library() {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) fail("there is no libcuda.so.1");
  return driver;
}
template <typename... T>
CUresult cuda(const char* name, T... values) {
  auto* const function = reinterpret_cast<CUresult (*)(T...)>(::dlsym(library(), name));
  return function == nullptr ? kNotSupported : function(values...);
}
#define NEED(name, ...) need(cuda(name __VA_OPT__(, ) __VA_ARGS__), name)

// Two ends of a TCP connection within this machine.
struct Loopback {
  regatta::os::UniqueFd near;
  regatta::os::UniqueFd far;
  Loopback() {
    auto listener = listen_tcp("127.0.0.1:0");
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (!listener ||
        ::getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      fail("cannot listen");
    auto dialed = dial_tcp("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
    if (!dialed) fail("cannot connect");
    near = std::move(*dialed);
    far.reset(::accept(listener->get(), nullptr, nullptr));
    tune_socket(far.get());
  }
};

void measure_loopback() {
  constexpr int kQuestions = 20'000;
  constexpr std::size_t kBytes = 256 << 20;
  report("bare TCP: question and answer of 16 bytes", "us", [] {
    Loopback pair;
    std::thread echo([&] {
      char bytes[16];
      while (receive_all(pair.far.get(), bytes, sizeof bytes))
        send_all(pair.far.get(), bytes, sizeof bytes);
    });
    char bytes[16] = {};
    const auto start = Clock::now();
    for (int i = 0; i < kQuestions; ++i)
      if (!send_all(pair.near.get(), bytes, sizeof bytes) ||
          !receive_all(pair.near.get(), bytes, sizeof bytes))
        fail("the connection broke");
    const double time = seconds_since(start);
    ::shutdown(pair.near.get(), SHUT_RDWR);
    echo.join();
    return time / kQuestions * 1e6;
  });
  report("bare TCP: pieces of 1 MiB one way", "GB/s", [] {
    Loopback pair;
    std::thread sink([&] {
      std::vector<char> bytes(kPiece);
      while (receive_all(pair.far.get(), bytes.data(), bytes.size()))
        continue;
      send_all(pair.far.get(), "x", 1);
    });
    const std::vector<char> bytes(kPiece);
    const auto start = Clock::now();
    for (std::size_t sent = 0; sent < kBytes; sent += kPiece)
      send_all(pair.near.get(), bytes.data(), bytes.size());
    ::shutdown(pair.near.get(), SHUT_WR);
    char end = 0;
    receive_all(pair.near.get(), &end, 1);
    const double time = seconds_since(start);
    sink.join();
    return kBytes / time / 1e9;
  });
}

void measure_calls(CUfunction function) {
  constexpr int kCalls = 10'000;
  report("driver: a call that waits (cuStreamQuery)", "us", [] {
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i)
      NEED("cuStreamQuery", CUstream{});
    return seconds_since(start) / kCalls * 1e6;
  });
  report("driver: a launch, until the call returns", "us", [&] {
    constexpr int kLaunches = 400;  // as many as a queue takes
    const auto start = Clock::now();
    for (int i = 0; i < kLaunches; ++i)
      NEED("cuLaunchKernel", function, 1U, 1U, 1U, 32U, 1U, 1U, 0U, CUstream{},
           static_cast<void**>(nullptr), static_cast<void**>(nullptr));
    const double time = seconds_since(start);
    NEED("cuCtxSynchronize");
    return time / kLaunches * 1e6;
  });
  report("driver: launches until all have run, each", "us", [&] {
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i)
      NEED("cuLaunchKernel", function, 1U, 1U, 1U, 32U, 1U, 1U, 0U, CUstream{},
           static_cast<void**>(nullptr), static_cast<void**>(nullptr));
    NEED("cuCtxSynchronize");
    return seconds_since(start) / kCalls * 1e6;
  });
}

void measure_copies() {
  constexpr std::size_t kBytes = 64 << 20;
  std::vector<char> bytes(kBytes, 'x');
  CUdeviceptr address = 0;
  NEED("cuMemAlloc_v2", &address, kBytes);
  const auto rate = [&](const std::function<void()>& copy) {
    const auto start = Clock::now();
    for (int i = 0; i < 4; ++i)
      copy();
    return 4 * kBytes / seconds_since(start) / 1e9;
  };
  report("driver: 64 MiB to the GPU", "GB/s", [&] {
    return rate(
        [&] { NEED("cuMemcpyHtoD_v2", address, static_cast<const void*>(bytes.data()), kBytes); });
  });
  report("driver: 64 MiB from the GPU", "GB/s", [&] {
    return rate(
        [&] { NEED("cuMemcpyDtoH_v2", static_cast<void*>(bytes.data()), address, kBytes); });
  });
  NEED("cuMemFree_v2", address);
}

}  // namespace

int main() {
  const char* const text =
      ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry spin_1us() { ret; }\n";
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  NEED("cuInit", 0U);
  NEED("cuCtxCreate_v2", &context, 0U, CUdevice{0});
  NEED("cuModuleLoadData", &module, static_cast<const void*>(text));
  NEED("cuModuleGetFunction", &function, module, "spin_1us");
  measure_loopback();
  measure_calls(function);
  measure_copies();
  return 0;
}
