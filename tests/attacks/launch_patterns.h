// tests/attacks/launch_patterns.h: a library of ways to launch work, by name: of kernels of one
// length, that alternate, that follow a beat or chance, with waits, graphs, streams and threads.
// Each asks for as much of a device as it can get, unless its name says that it pauses.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "tests/attacks/attack.h"

namespace regatta::attacks {

inline constexpr std::uint64_t kUs = 1'000;
inline constexpr std::uint64_t kMs = 1'000'000;

// The streams, kernels and graphs that a pattern launches with, in one thread.
class Launcher {
 public:
  explicit Launcher(std::uint64_t seed, unsigned streams = 1) : random_(seed) {
    for (unsigned i = 0; i < streams; ++i) {
      CUstream stream = nullptr;
      MUST(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
      streams_.push_back(stream);
      kernels_.emplace_back(stream);
    }
  }

  void kernel(std::uint64_t ns, unsigned stream = 0, unsigned blocks = 1024) {
    MUST(kernels_[stream].launch(ns, blocks));
    ++launches_;
  }
  void wait(unsigned stream = 0) { MUST(kernels_[stream].wait()); }
  static void pause(std::uint64_t ns) { ::usleep(static_cast<useconds_t>(ns / 1000)); }

  // A graph of `count` kernels of this length.
  CUgraphExec graph(int count, std::uint64_t ns) {
    CUgraph graph = nullptr;
    CUgraphExec made = nullptr;
    MUST(CU(cuStreamBeginCapture_v2)(streams_[0], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    for (int i = 0; i < count; ++i)
      MUST(kernels_[0].launch(ns));
    MUST(CU(cuStreamEndCapture)(streams_[0], &graph));
    MUST(CU(cuGraphInstantiateWithFlags)(&made, graph, 0));
    return made;
  }
  void launch(CUgraphExec graph) {
    MUST(CU(cuGraphLaunch)(graph, streams_[0]));
    ++launches_;
  }
  // The same kernel of a module that nobody has seen before.
  void fresh_kernel(std::uint64_t ns) {
    const SpinKernel fresh(streams_[0]);
    MUST(fresh.launch(ns));
    ++launches_;
  }

  std::uint64_t launches() const { return launches_; }
  std::uint64_t draw(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random_);
  }
  std::uint64_t draw_exponential(double mean, std::uint64_t most) {
    const double drawn = std::exponential_distribution<double>(1 / mean)(random_);
    return std::min(most, static_cast<std::uint64_t>(drawn) + 1);
  }

 private:
  std::mt19937_64 random_;
  std::vector<CUstream> streams_;
  std::vector<SpinKernel> kernels_;
  std::uint64_t launches_ = 0;
};

struct Pattern {
  std::function<void(Launcher&)> step;  // again and again
  unsigned streams = 1;
  unsigned threads = 1;
  // The part of the device that it asks for when it is alone is less than one.
  bool pauses = false;
};

inline const std::map<std::string, Pattern>& launch_patterns() {
  static const std::map<std::string, Pattern> all = [] {
    std::map<std::string, Pattern> patterns;
    const auto steady = [](std::uint64_t ns) {
      return Pattern{[ns](Launcher& device) { device.kernel(ns); }};
    };
    const auto every = [](std::uint64_t count, std::uint64_t rare_ns, std::uint64_t usual_ns) {
      return Pattern{[=](Launcher& device) {
        device.kernel(device.launches() % count == 0 ? rare_ns : usual_ns);
      }};
    };
    const auto waited = [](std::uint64_t ns, int count = 1) {
      return Pattern{[=](Launcher& device) {
        for (int i = 0; i < count; ++i)
          device.kernel(ns);
        device.wait();
      }};
    };
    patterns["steady-20us"] = steady(20 * kUs);
    patterns["steady-50us"] = steady(50 * kUs);
    patterns["steady-100us"] = steady(100 * kUs);
    patterns["steady-200us"] = steady(200 * kUs);
    patterns["steady-500us"] = steady(500 * kUs);
    patterns["steady-1ms"] = steady(kMs);
    patterns["steady-2ms"] = steady(2 * kMs);
    patterns["steady-5ms"] = steady(5 * kMs);
    patterns["alternating-20us-1ms"] = every(2, kMs, 20 * kUs);
    patterns["every-3rd-long"] = every(3, 2 * kMs, 30 * kUs);
    patterns["every-8th-short"] = every(8, 20 * kUs, kMs);
    patterns["every-8th-long"] = every(8, 3 * kMs, 50 * kUs);
    patterns["every-16th-long"] = every(16, 4 * kMs, 100 * kUs);
    patterns["every-256th-short"] = every(256, 20 * kUs, 500 * kUs);
    patterns["every-256th-long"] = every(256, 5 * kMs, 50 * kUs);
    patterns["blocks-of-64"] = {[](Launcher& device) {
      device.kernel(device.launches() / 64 % 2 == 0 ? 30 * kUs : 600 * kUs);
    }};
    patterns["growing"] = {
        [](Launcher& device) { device.kernel(10 * kUs * (1 + device.launches() % 100)); }};
    patterns["doubling"] = {
        [](Launcher& device) { device.kernel(10 * kUs << device.launches() % 9); }};
    patterns["uniform"] = {[](Launcher& device) { device.kernel(device.draw(10 * kUs, kMs)); }};
    patterns["exponential"] = {
        [](Launcher& device) { device.kernel(device.draw_exponential(200e3, 5 * kMs)); }};
    patterns["coin-20us-2ms"] = {
        [](Launcher& device) { device.kernel(device.draw(0, 9) == 0 ? 2 * kMs : 20 * kUs); }};
    patterns["waits-after-2ms"] = waited(2 * kMs);
    patterns["waits-after-5ms"] = waited(5 * kMs);
    patterns["waits-after-10-of-300us"] = waited(300 * kUs, 10);
    patterns["waits-after-40-of-100us"] = waited(100 * kUs, 40);
    patterns["waits-at-random"] = {[](Launcher& device) {
      device.kernel(device.draw(50 * kUs, 500 * kUs));
      if (device.draw(0, 19) == 0) device.wait();
    }};
    patterns["graphs"] = {[](Launcher& device) {
      thread_local const CUgraphExec graph = device.graph(20, 50 * kUs);
      device.launch(graph);
    }};
    patterns["graphs-of-two-lengths"] = {[](Launcher& device) {
      thread_local const CUgraphExec graphs[] = {device.graph(4, 50 * kUs),
                                                 device.graph(20, 100 * kUs)};
      device.launch(graphs[device.launches() % 2]);
    }};
    patterns["graphs-and-kernels"] = {[](Launcher& device) {
      thread_local const CUgraphExec graph = device.graph(10, 80 * kUs);
      if (device.launches() % 4 == 0)
        device.launch(graph);
      else
        device.kernel(150 * kUs);
    }};
    patterns["two-streams"] = {.step =
                                   [](Launcher& device) {
                                     device.kernel(200 * kUs,
                                                   static_cast<unsigned>(device.launches() % 2));
                                   },
                               .streams = 2};
    patterns["narrow-in-four-streams"] = {
        .step =
            [](Launcher& device) {
              device.kernel(400 * kUs, static_cast<unsigned>(device.launches() % 4), 30);
            },
        .streams = 4};
    patterns["narrow"] = {[](Launcher& device) { device.kernel(200 * kUs, 0, 8); }};
    patterns["two-threads"] = {.step = [](Launcher& device) { device.kernel(300 * kUs); },
                               .threads = 2};
    patterns["many-sizes"] = {[](Launcher& device) {
      device.kernel(100 * kUs, 0, 200 + static_cast<unsigned>(device.launches() % 5000));
    }};
    patterns["fresh-kernels"] = {[](Launcher& device) {
      if (device.launches() % 8 == 0)
        device.fresh_kernel(kMs);
      else
        device.kernel(500 * kUs);
    }};
    patterns["pauses-3ms-after-2ms"] = {.step =
                                            [](Launcher& device) {
                                              device.kernel(2 * kMs);
                                              device.wait();
                                              Launcher::pause(3 * kMs);
                                            },
                                        .pauses = true};
    patterns["pauses-20ms-after-10ms"] = {.step =
                                              [](Launcher& device) {
                                                for (int i = 0; i < 20; ++i)
                                                  device.kernel(500 * kUs);
                                                device.wait();
                                                Launcher::pause(20 * kMs);
                                              },
                                          .pauses = true};
    return patterns;
  }();
  return all;
}

}  // namespace regatta::attacks
