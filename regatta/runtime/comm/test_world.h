// comm/test_world.h: for tests and benchmarks: a world whose ranks are threads of one process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/runtime/comm/communicator.h"

namespace regatta::comm {

// How the ranks are spread: all on one server, each on its own, or two by two. kRdma is kTcp by
// RDMA, for machines that have devices.
enum class TestLayout { kShm, kTcp, kMixed, kRdma };

inline const char* name_of_test_layout(TestLayout layout) {
  static constexpr const char* kNames[] = {"Shm", "Tcp", "Mixed", "Rdma"};
  return kNames[static_cast<int>(layout)];
}

// Addresses of RDMA devices of this machine that reach each other, for the ranks in turn: from the
// variable REGATTA_TEST_RDMA, "10.0.0.1,10.0.0.2". Mostly there are none.
inline std::vector<std::string> rdma_addresses() {
  const char* given = std::getenv("REGATTA_TEST_RDMA");
  return given == nullptr ? std::vector<std::string>() : split(given, ',');
}

// The layouts that tests run over: with RDMA devices only kRdma, since the others run elsewhere.
inline std::vector<TestLayout> test_layouts() {
  if (!rdma_addresses().empty()) return {TestLayout::kRdma};
  return {TestLayout::kShm, TestLayout::kTcp, TestLayout::kMixed};
}

inline std::string server_of(TestLayout layout, int rank) {
  switch (layout) {
    case TestLayout::kShm:
      return "s0";
    case TestLayout::kTcp:
    case TestLayout::kRdma:
      return "s" + std::to_string(rank);
    case TestLayout::kMixed:
      return "s" + std::to_string(rank / 2);
  }
  return "";
}

// Brings the endpoints of threads together.
class LocalExchange {
 public:
  explicit LocalExchange(int world_size) : texts_(static_cast<std::size_t>(world_size)) {}

  Exchange of(int rank) {
    return [this, rank](const std::string& mine) -> Result<std::vector<std::string>> {
      std::unique_lock lock(mutex_);
      at(texts_, rank) = mine;
      ++given_;
      changed_.notify_all();
      const auto all = [this] { return given_ == static_cast<int>(texts_.size()); };
      if (!changed_.wait_for(lock, std::chrono::seconds(20), all))
        return Error{Code::kTimeout, "the test's exchange is not complete"};
      return texts_;
    };
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> texts_;
  int given_ = 0;
};

inline CommunicatorOptions test_options(TestLayout layout, int rank) {
  CommunicatorOptions options;
  options.job_token = "test";
  options.server = server_of(layout, rank);
  options.connections = 2;
  if (layout == TestLayout::kRdma) {
    const std::vector<std::string> addresses = rdma_addresses();
    options.listen_address = addresses[static_cast<std::size_t>(rank) % addresses.size()];
    options.rdma = Rdma::kRequired;
  }
  return options;
}

// Connects `world_size` ranks and runs `body(communicator)` on a thread each. `adjust` may change
// the options of a rank. Returns the error of each rank that could not connect: tests that expect
// none take run_all() (test_ranks.h).
[[nodiscard]] inline std::vector<std::optional<Error>> run_ranks(
    TestLayout layout, int world_size, const std::function<void(Communicator&)>& body,
    const std::function<void(int, CommunicatorOptions&)>& adjust = {}) {
  LocalExchange exchange(world_size);
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(world_size));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int rank = 0; rank < world_size; ++rank)
    threads.emplace_back([&, rank] {
      CommunicatorOptions options = test_options(layout, rank);
      if (adjust) adjust(rank, options);
      auto world = Communicator::connect(Rank{rank}, world_size, exchange.of(rank), options);
      if (world)
        body(*world);
      else
        at(errors, rank) = world.error();
    });
  for (std::thread& thread : threads)
    thread.join();
  return errors;
}

}  // namespace regatta::comm
