// sharing/internal/client/test_launch_gate.h: for tests: a device that is none, and processes of
// tenants that launch on it through their gates.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "regatta/gpu/sharing/internal/client/launch_gate.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"

namespace regatta::sharing::gate_test {

using Ns = std::uint64_t;
inline constexpr Ns kUs = 1'000;
inline constexpr Ns kMs = 1'000'000;

inline Ns clock_ns() {
  return static_cast<Ns>(os::monotonic_now().value * 1e9);
}

// A device on which each stream takes the time of what it was given, one after the other.
class FakeDevice : public StreamEvents {
 public:
  void launch(void* stream, Ns duration) {
    const std::scoped_lock lock(mutex_);
    Ns& end = ends_[stream];
    end = std::max(end, clock_ns()) + duration;
  }
  Ns end_of(void* stream) {
    const std::scoped_lock lock(mutex_);
    return ends_[stream];
  }
  void capture(void* stream, bool on) {
    const std::scoped_lock lock(mutex_);
    on ? static_cast<void>(captured_.insert(stream)) : static_cast<void>(captured_.erase(stream));
  }
  int touched_captures() const { return touched_captures_; }
  int marks() const { return marks_; }

  Event record(void* stream) override {
    const std::scoped_lock lock(mutex_);
    if (captured_.count(stream) != 0) ++touched_captures_;
    ++marks_;
    return new Ns(std::max(ends_[stream], clock_ns()));
  }
  void wait(Event event) override {
    const Ns end = *static_cast<Ns*>(event);
    const Ns now = clock_ns();
    if (end > now) os::sleep_for(Seconds{static_cast<double>(end - now) * 1e-9});
  }
  bool is_reached(Event event) override { return *static_cast<Ns*>(event) <= clock_ns(); }
  std::optional<Ns> between_ns(Event begin, Event end) override {
    return *static_cast<Ns*>(end) - *static_cast<Ns*>(begin);
  }
  void release(Event event) override { delete static_cast<Ns*>(event); }

 private:
  bool is_capturing(void* stream) override {
    const std::scoped_lock lock(mutex_);
    return captured_.count(stream) != 0;
  }

  std::mutex mutex_;
  std::map<void*, Ns> ends_;
  std::set<void*> captured_;
  int touched_captures_ = 0;
  std::atomic<int> marks_ = 0;
};

// Shared memory to which the processes of a test report.
struct Log {
  struct Span {
    int tenant;
    Ns begin;
    Ns end;
  };
  std::atomic<std::size_t> count;
  std::atomic<bool> stop;
  std::atomic<int> ready;
  std::atomic<int> failed;
  std::atomic<std::uint64_t> launches;
  Span spans[1 << 18];
};

inline int number = 0;  // so that streams differ from 0
inline void* const kStream = &number;

// A tenant that launches kernels of this length until told to stop. Each is a span of the log: of a
// device that belongs to this process alone, so what overlaps is an error of the gate.
inline int flood(int page, int tenant, Ns kernel, Log& log) {
  const auto client = Client::connect(page, kTimeout);
  EXPECT_IN_TENANT(client);
  FakeDevice device;
  LaunchGate gate(**client, 0, device);
  const std::uint64_t key = KernelDurations::key_of(&device, 1);
  ++log.ready;
  while (!log.stop) {
    const LaunchGate::Pass pass = gate.pass(key, kStream);
    const Ns now = clock_ns();
    const Ns begin = std::max(device.end_of(kStream), now);
    device.launch(kStream, kernel);
    gate.launched(pass, kStream);
    log.spans[log.count++] = {tenant, begin, begin + kernel};
  }
  return 0;
}

// Time of one tenant in a span, and how long two overlapped.
inline Ns used(const Log& log, int tenant, Ns from, Ns to) {
  Ns sum = 0;
  for (std::size_t i = 0; i < log.count; ++i) {
    const Log::Span& one = log.spans[i];
    if (one.tenant == tenant && one.end > from && one.begin < to)
      sum += std::min(one.end, to) - std::max(one.begin, from);
  }
  return sum;
}

// A process of a tenant with its gate and its device.
struct Tenant {
  explicit Tenant(int page) : client(Client::connect(page, kTimeout)) {
    if (client) gate = std::make_unique<LaunchGate>(**client, 0, device);
  }
  void launch(Ns duration, const void* function = &number, void* stream = kStream) {
    const LaunchGate::Pass pass = gate->pass(KernelDurations::key_of(function, 1), stream);
    device.launch(stream, duration);
    gate->launched(pass, stream);
  }
  Result<std::unique_ptr<Client>> client;
  FakeDevice device;
  std::unique_ptr<LaunchGate> gate;
};

}  // namespace regatta::sharing::gate_test
