// comm/internal/forked_world.h: for tests: a world whose ranks are processes, so that they can be
// killed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {

// Memory that all ranks see.
struct Blackboard {
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
  using Body = std::function<std::string(Communicator&, Blackboard&)>;

  explicit ForkedWorld(int world_size) : world_size_(world_size) {
    board_ = static_cast<Blackboard*>(mmap(nullptr, sizeof(Blackboard), PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ForkedWorld(const ForkedWorld&) = delete;
  ForkedWorld& operator=(const ForkedWorld&) = delete;
  ~ForkedWorld() {
    for (const pid_t pid : pids_)
      if (pid > 0) kill(pid, SIGKILL);
    for (const pid_t pid : pids_)
      if (pid > 0) waitpid(pid, nullptr, 0);
    munmap(board_, sizeof(Blackboard));
  }

  void start(Layout layout, const Body& body, const std::function<void(Options&)>& adjust = {}) {
    for (int rank = 0; rank < world_size_; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) {
        Options options = test_options(layout, rank);
        if (adjust) adjust(options);
        run_rank(rank, options, body);
        _exit(0);
      }
      pids_.push_back(pid);
    }
  }

  // Waits until every rank but those of `without` has ended, at most `limit`; true when they have.
  bool wait(Seconds limit, const std::vector<int>& without = {}) {
    const Seconds deadline = os::monotonic_now() + limit;
    for (int rank = 0; rank < world_size_; ++rank) {
      pid_t& pid = pids_[static_cast<std::size_t>(rank)];
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

  pid_t pid(int rank) const { return pids_[static_cast<std::size_t>(rank)]; }
  Blackboard& board() { return *board_; }
  std::string result(int rank) const { return board_->results[rank]; }
  Seconds ended_at(int rank) const { return {board_->ended_s[rank].load()}; }

 private:
  Exchange exchange(int rank) const {
    return [this, rank](const std::string& mine) -> Result<std::vector<std::string>> {
      std::strncpy(board_->endpoints[rank], mine.c_str(), Blackboard::kTextMax - 1);
      board_->given.fetch_add(1);
      const Seconds deadline = os::monotonic_now() + Seconds{2};
      while (board_->given.load() < world_size_) {
        if (os::monotonic_now() > deadline)
          return Error{Code::kTimeout, "the test's exchange is not complete"};
        os::sleep_for(Seconds{0.002});
      }
      std::vector<std::string> texts;
      texts.reserve(static_cast<std::size_t>(world_size_));
      for (int i = 0; i < world_size_; ++i)
        texts.emplace_back(board_->endpoints[i]);
      return texts;
    };
  }

  void run_rank(int rank, const Options& options, const Body& body) const {
    std::string result;
    auto world = Communicator::connect(Rank{rank}, world_size_, exchange(rank), options);
    if (world)
      result = body(*world, *board_);
    else
      result = "connect: " + world.error().message;
    board_->ended_s[rank].store(os::monotonic_now().value);
    std::strncpy(board_->results[rank], result.c_str(), Blackboard::kTextMax - 1);
  }

  int world_size_;
  Blackboard* board_ = nullptr;
  std::vector<pid_t> pids_;
};

}  // namespace regatta::comm
