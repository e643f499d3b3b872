#include "regatta/runtime/comm/internal/tuning/network_probe.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "regatta/base/os/clock.h"

namespace regatta::comm {
namespace {

constexpr int kBarriers = 4;
constexpr std::size_t kFirstBytes = std::size_t{64} << 10;
constexpr std::size_t kLastBytes = std::size_t{4} << 20;
// A transfer of this length is long enough to measure the rate.
constexpr double kLongEnough_s = 0.008;

Result<double> agree(Communicator& world, double value, ReduceOp op) {
  REGATTA_TRY_DO(world.all_reduce(&value, &value, 1, DataType::kF64, op).wait());
  return value;
}

Result<double> time_barrier(Communicator& world) {
  double best = 0;
  for (int i = 0; i < kBarriers; ++i) {
    const Seconds start = os::monotonic_now();
    REGATTA_TRY_DO(world.barrier().wait());
    const double took = (os::monotonic_now() - start).value;
    best = i == 0 ? took : std::min(best, took);
  }
  return agree(world, best, ReduceOp::kMax);
}

Result<double> time_shift(Communicator& world, std::vector<std::byte>& memory) {
  const int size = world.world_size();
  const Rank next{(world.rank().value + 1) % size};
  const Rank before{(world.rank().value + size - 1) % size};
  const std::size_t bytes = memory.size() / 2;
  REGATTA_TRY_DO(world.barrier().wait());
  const Seconds start = os::monotonic_now();
  Handle got = world.recv(memory.data() + bytes, bytes, DataType::kU8, before);
  Handle sent = world.send(memory.data(), bytes, DataType::kU8, next);
  REGATTA_TRY_DO(got.wait());
  REGATTA_TRY_DO(sent.wait());
  return agree(world, (os::monotonic_now() - start).value, ReduceOp::kMax);
}

}  // namespace

Result<NetworkParameters> probe_network(Communicator& world, const NetworkParameters& known) {
  NetworkParameters network = known;
  REGATTA_TRY(paths, agree(world, known.paths, ReduceOp::kMax));
  network.paths = static_cast<int>(paths);
  const int levels =
      static_cast<int>(std::bit_width(static_cast<unsigned>(world.world_size() - 1)));
  REGATTA_TRY(barrier_s, time_barrier(world));
  network.latency = Seconds{barrier_s / std::max(levels, 1)};
  for (std::size_t bytes = kFirstBytes; bytes <= kLastBytes; bytes *= 4) {
    std::vector<std::byte> memory(2 * bytes);
    // Twice: during the first one connections may still be probing the rate of their path.
    REGATTA_TRY(first_s, time_shift(world, memory));
    REGATTA_TRY(second_s, time_shift(world, memory));
    const double took_s = std::min(first_s, second_s);
    network.rate = {static_cast<double>(bytes) / std::max(took_s - network.latency.value, 1e-6)};
    if (took_s >= kLongEnough_s) break;
  }
  return network;
}

}  // namespace regatta::comm
