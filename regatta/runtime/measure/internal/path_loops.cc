#include "regatta/runtime/measure/internal/path_loops.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/stats.h"
#include "regatta/base/os/clock.h"

namespace regatta::measure {
namespace {

constexpr int kWarmUpRoundTrips = 10;
// Large collectives travel in pieces of this length (collective/internal/ring.h).
constexpr std::size_t kMessageBytes = std::size_t{512} << 10;

// One side of a pair.
struct Peer {
  comm::Communicator& communicator;
  Rank other;

  Status send(const void* data, std::size_t size) {
    return communicator.send(data, size, comm::DataType::kU8, other).wait();
  }
  Status receive(void* data, std::size_t size) {
    return communicator.recv(data, size, comm::DataType::kU8, other).wait();
  }
};

Status answer_round_trips(Peer& peer, int count) {
  std::int64_t word = 0;
  for (int i = 0; i < count; ++i) {
    REGATTA_TRY_DO(peer.receive(&word, sizeof word));
    REGATTA_TRY_DO(peer.send(&word, sizeof word));
  }
  return {};
}

Result<Seconds> time_round_trips(Peer& peer, int count) {
  std::int64_t word = 0;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const Seconds start = os::monotonic_now();
    REGATTA_TRY_DO(peer.send(&word, sizeof word));
    REGATTA_TRY_DO(peer.receive(&word, sizeof word));
    if (i >= kWarmUpRoundTrips) times.push_back((os::monotonic_now() - start).value);
  }
  REGATTA_CHECK(!times.empty());
  return Seconds{median(std::move(times))};
}

// Both sides send at the same time, message after message, as the neighbours of a ring do. One
// direction alone is faster: here acknowledgements share the links with data, and the slower of the
// two directions counts.
struct BidirectionalTransfer {
  explicit BidirectionalTransfer(std::int64_t size)
      : out(static_cast<std::size_t>(size), 1), in(out.size()) {}
  std::vector<char> out;
  std::vector<char> in;
};

Status exchange(Peer& peer, BidirectionalTransfer& both) {
  std::vector<comm::Handle> handles;
  for (std::size_t at = 0; at < both.out.size(); at += kMessageBytes) {
    const std::size_t bytes = std::min(kMessageBytes, both.out.size() - at);
    handles.push_back(
        peer.communicator.send(&both.out[at], bytes, comm::DataType::kU8, peer.other));
    handles.push_back(peer.communicator.recv(&both.in[at], bytes, comm::DataType::kU8, peer.other));
  }
  Status status;
  for (comm::Handle& handle : handles) {
    const Status ended = handle.wait();
    if (status && !ended) status = ended;
  }
  return status;
}

// Bytes per second and direction of `size` bytes, until both sides have all of the other's.
Result<BytesPerSecond> time_transfer(Peer& peer, Bytes size, Seconds round_trip) {
  BidirectionalTransfer both(size.value);
  std::int64_t word = size.value;
  REGATTA_TRY_DO(peer.send(&word, sizeof word));
  REGATTA_TRY_DO(peer.receive(&word, sizeof word));
  const Seconds start = os::monotonic_now();
  REGATTA_TRY_DO(exchange(peer, both));
  REGATTA_TRY_DO(peer.receive(&word, sizeof word));  // the other side has all of it too
  const Seconds taken = os::monotonic_now() - start;
  const Seconds moving = std::max(taken - round_trip, taken * 0.1);
  return size / moving;
}

Status answer_transfer(Peer& peer) {
  std::int64_t word = 0;
  REGATTA_TRY_DO(peer.receive(&word, sizeof word));
  BidirectionalTransfer both(word);
  REGATTA_TRY_DO(peer.send(&word, sizeof word));
  REGATTA_TRY_DO(exchange(peer, both));
  return peer.send(&word, sizeof word);
}

Result<PathSample> lead(Peer& peer, const MeasurementSchedule& schedule) {
  REGATTA_TRY(round_trip, time_round_trips(peer, schedule.round_trips + kWarmUpRoundTrips));
  // The first message finds the size of the others, and wakes up the connections.
  REGATTA_TRY(first, time_transfer(peer, schedule.transfer_size_min, round_trip));
  const auto wanted = static_cast<long long>(first.value * schedule.transfer_time.value);
  const Bytes size{
      std::clamp(wanted, schedule.transfer_size_min.value, schedule.transfer_size_max.value)};
  std::vector<double> rates;
  for (int i = 0; i < schedule.transfers; ++i) {
    REGATTA_TRY(rate, time_transfer(peer, size, round_trip));
    rates.push_back(rate.value);
  }
  REGATTA_CHECK(!rates.empty());
  return PathSample{.task = 0, .latency = round_trip / 2, .bandwidth = {median(std::move(rates))}};
}

}  // namespace

Result<PathSample> run_path(comm::Communicator& communicator, const PathTask& task,
                            const MeasurementSchedule& schedule) {
  const bool leads = communicator.rank() == task.from;
  Peer peer{communicator, leads ? task.to : task.from};
  if (leads) return lead(peer, schedule);
  REGATTA_TRY_DO(answer_round_trips(peer, schedule.round_trips + kWarmUpRoundTrips));
  for (int i = 0; i < schedule.transfers + 1; ++i)
    REGATTA_TRY_DO(answer_transfer(peer));
  return PathSample{};
}

}  // namespace regatta::measure
