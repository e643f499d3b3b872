// coll/test_world.h: for tests and benchmarks: a world whose ranks are threads of one process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "regatta/coll/communicator.h"

namespace regatta::coll {

// How the ranks are spread: all on one server, each on its own, or two by two.
enum class Layout { kShm, kTcp, kMixed };

inline std::string server_of(Layout layout, int rank) {
  switch (layout) {
    case Layout::kShm:
      return "s0";
    case Layout::kTcp:
      return "s" + std::to_string(rank);
    case Layout::kMixed:
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
      texts_[static_cast<std::size_t>(rank)] = mine;
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

inline Options test_options(Layout layout, int rank) {
  Options options;
  options.job_token = "test";
  options.server = server_of(layout, rank);
  options.connections = 2;
  return options;
}

// Connects `world_size` ranks and runs `body(communicator)` on a thread each. `adjust` may change
// the options of a rank. Returns the error of each rank that could not connect.
inline std::vector<std::optional<Error>> run_ranks(
    Layout layout, int world_size, const std::function<void(Communicator&)>& body,
    const std::function<void(int, Options&)>& adjust = {}) {
  LocalExchange exchange(world_size);
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(world_size));
  std::vector<std::thread> threads;
  threads.reserve(errors.size());
  for (int rank = 0; rank < world_size; ++rank)
    threads.emplace_back([&, rank] {
      Options options = test_options(layout, rank);
      if (adjust) adjust(rank, options);
      auto world = Communicator::connect(Rank{rank}, world_size, exchange.of(rank), options);
      if (world)
        body(*world);
      else
        errors[static_cast<std::size_t>(rank)] = world.error();
    });
  for (std::thread& thread : threads)
    thread.join();
  return errors;
}

}  // namespace regatta::coll
