// Cost of one read of all connections, by their number: a server has some dozens.
#include <vector>

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/flow_counters.h"

namespace regatta::probe {
namespace {

std::vector<os::UniqueFd> connect_pairs(int count) {
  static_cast<void>(
      os::raise_descriptor_limit(static_cast<std::size_t>(2 * count) + 16).has_value());
  std::vector<os::UniqueFd> sockets;
  const os::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REGATTA_CHECK(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
  ::listen(listener.get(), count);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  for (int i = 0; i < count; ++i) {
    sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto* const to = reinterpret_cast<sockaddr*>(&address);
    REGATTA_CHECK(::connect(sockets.back().get(), to, size) == 0);
    sockets.emplace_back(::accept(listener.get(), nullptr, nullptr));
  }
  return sockets;
}

// Nothing moves. Arguments: sockets; ms between two looks for new ones: at 0 each look is a dump.
// The counter is the share of a core at one look each 10 ms.
void bm_read_counters(benchmark::State& state) {
  const auto sockets = connect_pairs(static_cast<int>(state.range(0)) / 2);
  auto counters =
      FlowCounters::open({.look_for_new = {1e-3 * static_cast<double>(state.range(1))}});
  const Seconds begin = os::thread_cpu_time();
  for (auto _ : state)
    benchmark::DoNotOptimize(counters->read());
  const Seconds used = os::thread_cpu_time() - begin;
  state.counters["core_at_10ms_%"] =
      100 * used.value / static_cast<double>(state.iterations()) / 0.01;
}
BENCHMARK(bm_read_counters)->ArgsProduct({{8, 32, 64, 128, 256}, {0, 1000000}});

// Some move between any two looks. Arguments: sockets; how many of them move; whether interfaces
// are asked too.
void bm_read_moving(benchmark::State& state) {
  const auto sockets = connect_pairs(static_cast<int>(state.range(0)) / 2);
  const auto moving = static_cast<std::size_t>(state.range(1));
  auto counters =
      FlowCounters::open({.look_for_new = {1000}, .asks_interfaces = state.range(2) != 0});
  std::vector<char> text(20'000);
  Seconds used;
  for (auto _ : state) {
    for (std::size_t i = 0; i + 1 < moving; i += 2) {
      benchmark::DoNotOptimize(::write(sockets[i].get(), text.data(), text.size()));
      benchmark::DoNotOptimize(::recv(sockets[i + 1].get(), text.data(), text.size(), MSG_WAITALL));
    }
    const Seconds begin = os::thread_cpu_time();
    benchmark::DoNotOptimize(counters->read());
    used += os::thread_cpu_time() - begin;
    state.SetIterationTime((os::thread_cpu_time() - begin).value);
  }
  state.counters["core_at_10ms_%"] =
      100 * used.value / static_cast<double>(state.iterations()) / 0.01;
}
BENCHMARK(bm_read_moving)->ArgsProduct({{64}, {0, 16, 32, 64}, {0, 1}})->UseManualTime();

}  // namespace
}  // namespace regatta::probe
