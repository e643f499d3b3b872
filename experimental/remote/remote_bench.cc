// Times calls, launches and copies through the driver that this program finds, and a bare TCP
// connection of this machine: run it alone, and under regatta gpu pool run. remote_bench [MIB
// [CALLS]]: the length of copies and the number of calls, 64 and 10,000
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "experimental/remote/internal/frames.h"
#include "experimental/remote/internal/socket.h"
#include "regatta/base/os/socket.h"

namespace {

using namespace regatta::remote;  // NOLINT(google-build-using-namespace): a program of its
                                  // own
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 5;

struct Amount {
  std::size_t copy_mib = 64;
  int calls = 10'000;
};

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
    auto dialed = connect_tcp("127.0.0.1:" + std::to_string(ntohs(address.sin_port)));
    if (!dialed) fail("cannot connect");
    near = std::move(*dialed);
    far.reset(::accept(listener->get(), nullptr, nullptr));
    regatta::os::enable_keepalive(far.get());
  }
};

void measure_loopback(const Amount& amount) {
  const int questions = 2 * amount.calls;
  const std::size_t bytes_each = amount.copy_mib << 22;
  report("bare TCP: question and answer of 16 bytes", "us", [questions] {
    Loopback pair;
    std::thread echo([&] {
      char bytes[16];
      while (receive_all(pair.far.get(), bytes, sizeof bytes))
        send_all(pair.far.get(), bytes, sizeof bytes);
    });
    char bytes[16] = {};
    const auto start = Clock::now();
    for (int i = 0; i < questions; ++i)
      if (!send_all(pair.near.get(), bytes, sizeof bytes) ||
          !receive_all(pair.near.get(), bytes, sizeof bytes))
        fail("the connection broke");
    const double time = seconds_since(start);
    ::shutdown(pair.near.get(), SHUT_RDWR);
    echo.join();
    return time / questions * 1e6;
  });
  report("bare TCP: pieces of 1 MiB one way", "GB/s", [bytes_each] {
    Loopback pair;
    std::thread sink([&] {
      std::vector<char> bytes(kPiece);
      while (receive_all(pair.far.get(), bytes.data(), bytes.size()))
        continue;
      send_all(pair.far.get(), "x", 1);
    });
    const std::vector<char> bytes(kPiece);
    const auto start = Clock::now();
    for (std::size_t sent = 0; sent < bytes_each; sent += kPiece)
      send_all(pair.near.get(), bytes.data(), bytes.size());
    ::shutdown(pair.near.get(), SHUT_WR);
    char end = 0;
    receive_all(pair.near.get(), &end, 1);
    const double time = seconds_since(start);
    sink.join();
    return static_cast<double>(bytes_each) / time / 1e9;
  });
}

void measure_calls(CUfunction function, const Amount& amount) {
  const int calls = amount.calls;
  report("driver: a call that waits (cuStreamQuery)", "us", [calls] {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i)
      NEED("cuStreamQuery", CUstream{});
    return seconds_since(start) / calls * 1e6;
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
    for (int i = 0; i < calls; ++i)
      NEED("cuLaunchKernel", function, 1U, 1U, 1U, 32U, 1U, 1U, 0U, CUstream{},
           static_cast<void**>(nullptr), static_cast<void**>(nullptr));
    NEED("cuCtxSynchronize");
    return seconds_since(start) / calls * 1e6;
  });
}

void measure_copies(const Amount& amount) {
  const std::size_t size = amount.copy_mib << 20;
  const std::string length = std::to_string(amount.copy_mib) + " MiB";
  std::vector<char> bytes(size, 'x');
  CUdeviceptr address = 0;
  NEED("cuMemAlloc_v2", &address, size);
  const auto rate = [&](const std::function<void()>& copy) {
    const auto start = Clock::now();
    for (int i = 0; i < 4; ++i)
      copy();
    return 4 * static_cast<double>(size) / seconds_since(start) / 1e9;
  };
  report(("driver: " + length + " to the GPU").c_str(), "GB/s", [&] {
    return rate(
        [&] { NEED("cuMemcpyHtoD_v2", address, static_cast<const void*>(bytes.data()), size); });
  });
  report(("driver: " + length + " from the GPU").c_str(), "GB/s", [&] {
    return rate([&] { NEED("cuMemcpyDtoH_v2", static_cast<void*>(bytes.data()), address, size); });
  });
  NEED("cuMemFree_v2", address);
}

}  // namespace

int main(int argc, char** argv) {
  Amount amount;
  if (argc > 1) amount.copy_mib = static_cast<std::size_t>(std::atoi(argv[1]));
  if (argc > 2) amount.calls = std::atoi(argv[2]);
  if (amount.copy_mib < 1 || amount.copy_mib > 1024 || amount.calls < 1)
    fail("give a number of MiB up to 1024 and a number of calls");
  const char* const text =
      ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry spin_1us() { ret; }\n";
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  NEED("cuInit", 0U);
  NEED("cuCtxCreate_v2", &context, 0U, CUdevice{0});
  NEED("cuModuleLoadData", &module, static_cast<const void*>(text));
  NEED("cuModuleGetFunction", &function, module, "spin_1us");
  measure_loopback(amount);
  measure_calls(function, amount);
  measure_copies(amount);
  return 0;
}
