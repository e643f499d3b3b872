// tests/gpu_time/tenant.h: a process of a tenant that works on a stand-in device through the gate,
// and what the device's own log says of who had it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/vgpu/daemon/test_daemon.h"
#include "tests/standin/fixture.h"

namespace regatta::gpu_time {

using standin::Interval;
using standin::TestDevice;
using standin::Time;

struct Work {
  Time kernel = std::chrono::microseconds(200);
  int graph_kernels = 0;  // so many in a graph that is launched; 0: without a graph
  unsigned blocks = 1024;
  Time pause{};          // between one and the next, after having waited for it
  bool is_bare = false;  // without the gate
};

// What processes tell the test. Shared memory.
struct Board {
  std::atomic<int> ready = 0;
  std::atomic<bool> stop = false;
  std::atomic<bool> pause = false;  // of those that pause_with_board
  std::atomic<std::size_t> latency_count = 0;
  double latency_s[1 << 16] = {};  // of work with a pause: from the launch to its end
};

// The life of the process; its exit status.
int work_on_device(const TestDevice& device, int page, const Work& work, Board& board);

// The part of [begin, end) that the device worked for the process.
double share(const std::vector<Interval>& log, pid_t pid, Time begin, Time end);
// The largest miss of `part` over windows of a second within [begin, end).
double worst_miss(const std::vector<Interval>& log, pid_t pid, double part, Time begin, Time end);

}  // namespace regatta::gpu_time
