// comm/internal/test_forked_world.h: for tests: a world whose ranks are processes, so that they can
// be killed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {

// Memory that all ranks see.
struct SharedTestState {
  static constexpr std::size_t kRanksMax = 64;
  static constexpr std::size_t kTextMax = 512;
  std::atomic<int> given;
  std::atomic<int> stage;      // for the test's own use
  std::atomic<int> shrinking;  // the same
  char endpoints[kRanksMax][kTextMax];
  char results[kRanksMax][kTextMax];
  std::atomic<double> ended_s[kRanksMax];
};

class ForkedWorld {
 public:
  // Returns what the rank has to say: "" all went well.
  using Body = std::function<std::string(Communicator&, SharedTestState&)>;

  explicit ForkedWorld(int world_size) : world_size_(world_size) {
    state_ =
        static_cast<SharedTestState*>(mmap(nullptr, sizeof(SharedTestState), PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ForkedWorld(const ForkedWorld&) = delete;
  ForkedWorld& operator=(const ForkedWorld&) = delete;
  ~ForkedWorld() {
    for (const pid_t pid : pids_)
      if (pid > 0) kill(pid, SIGKILL);
    for (const pid_t pid : pids_)
      if (pid > 0) waitpid(pid, nullptr, 0);
    munmap(state_, sizeof(SharedTestState));
  }

  void start(TestLayout layout, const Body& body,
             const std::function<void(CommunicatorOptions&)>& adjust = {}) {
    for (int rank = 0; rank < world_size_; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) {
        CommunicatorOptions options = test_options(layout, rank);
        if (adjust) adjust(options);
        run_rank(rank, options, body);
        _exit(0);
      }
      pids_.push_back(pid);
    }
  }

  // Waits at most a minute until `count` ranks have raised the stage, each before it ends.
  testing::AssertionResult reaches_stage(int count) {
    const Seconds deadline = os::monotonic_now() + Seconds{60};
    while (state_->stage.load() < count) {
      for (int rank = 0; rank < world_size_; ++rank)
        if (state_->ended_s[rank].load() > 0 && state_->stage.load() < count)
          return testing::AssertionFailure() << "rank " << rank << " has ended: " << result(rank);
      if (os::monotonic_now() > deadline)
        return testing::AssertionFailure() << state_->stage.load() << " of " << count << " ranks";
      os::sleep_for(Seconds{0.01});
    }
    return testing::AssertionSuccess();
  }

  // Waits until every rank but those of `without` has ended, at most `limit`; true when they have.
  bool wait(Seconds limit, const std::vector<int>& without = {}) {
    const Seconds deadline = os::monotonic_now() + limit;
    for (int rank = 0; rank < world_size_; ++rank) {
      pid_t& pid = at(pids_, rank);
      const bool is_awaited = std::count(without.begin(), without.end(), rank) == 0;
      while (is_awaited && pid > 0) {
        if (waitpid(pid, nullptr, WNOHANG) == pid)
          pid = 0;
        else if (os::monotonic_now() > deadline)
          return false;
        else
          os::sleep_for(Seconds{0.005});
      }
    }
    return true;
  }

  pid_t pid(int rank) const { return at(pids_, rank); }
  SharedTestState& state() { return *state_; }
  std::string result(int rank) const { return state_->results[rank]; }
  Seconds ended_at(int rank) const { return {state_->ended_s[rank].load()}; }

 private:
  Exchange exchange(int rank) const {
    return [this, rank](const std::string& mine) -> Result<std::vector<std::string>> {
      std::strncpy(state_->endpoints[rank], mine.c_str(), SharedTestState::kTextMax - 1);
      state_->given.fetch_add(1);
      const Seconds deadline = os::monotonic_now() + Seconds{20};
      while (state_->given.load() < world_size_) {
        if (os::monotonic_now() > deadline)
          return Error{Code::kTimeout, "the test's exchange is not complete"};
        os::sleep_for(Seconds{0.002});
      }
      std::vector<std::string> texts;
      texts.reserve(static_cast<std::size_t>(world_size_));
      for (int i = 0; i < world_size_; ++i)
        texts.emplace_back(state_->endpoints[i]);
      return texts;
    };
  }

  void run_rank(int rank, const CommunicatorOptions& options, const Body& body) const {
    std::string result;
    auto world = Communicator::connect(Rank{rank}, world_size_, exchange(rank), options);
    if (world)
      result = body(*world, *state_);
    else
      result = "connect: " + world.error().message;
    std::strncpy(state_->results[rank], result.c_str(), SharedTestState::kTextMax - 1);
    state_->ended_s[rank].store(os::monotonic_now().value);
  }

  int world_size_;
  SharedTestState* state_ = nullptr;
  std::vector<pid_t> pids_;
};

}  // namespace regatta::comm
