// The errors that the ranks of a world get when one of them dies, stops, stays away or makes a
// mistake.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/test_forked_world.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_world.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

using testing::HasSubstr;

constexpr Seconds kPeerTimeout{1.5};

void adjust_names(CommunicatorOptions& options) {
  options.peer_timeout = kPeerTimeout;
  for (int rank = 0; rank < 4; ++rank)
    options.rank_names.push_back("rank " + std::to_string(rank) + " (s/" + std::to_string(rank) +
                                 ")");
}

// Reduces without end; returns the message of the first error.
std::string reduce_until_error(Communicator& world, std::size_t count) {
  std::vector<float> data(count, 1.0F);
  for (;;) {
    const Status status =
        world.all_reduce(data.data(), data.data(), count, DataType::kF32, ReduceOp::kMax).wait();
    if (!status) return status.error().message;
  }
}

class DeathTest : public testing::TestWithParam<TestLayout> {};
INSTANTIATE_TEST_SUITE_P(Worlds, DeathTest, testing::ValuesIn(test_layouts()));

TEST_P(DeathTest, KilledRankIsNamedByAllOthersInMidOperation) {
  for (const std::size_t count : {std::size_t{4}, std::size_t{1} << 20}) {
    ForkedWorld world(4);
    world.start(
        GetParam(),
        [&](Communicator& ranks, SharedTestState& state) {
          ++state.stage;
          return reduce_until_error(ranks, count);
        },
        adjust_names);
    ASSERT_TRUE(world.reaches_stage(4));
    os::sleep_for(Seconds{0.2});
    const Seconds killed_at = os::monotonic_now();
    kill(world.pid(2), SIGKILL);
    ASSERT_TRUE(world.wait(kPeerTimeout + Seconds{8}));
    for (const int rank : {0, 1, 3}) {
      EXPECT_THAT(world.result(rank), HasSubstr("rank 2 (s/2) at s")) << rank;
      EXPECT_THAT(world.result(rank), HasSubstr("connection lost")) << rank;
      EXPECT_LT(world.ended_at(rank) - killed_at, kPeerTimeout + Seconds{1}) << rank;
    }
  }
}

TEST_P(DeathTest, KilledRankIsNamedByTheNextCallOfIdleRanks) {
  ForkedWorld world(4);
  world.start(
      GetParam(),
      [](Communicator& ranks, SharedTestState& state) -> std::string {
        ++state.stage;
        while (state.stage.load() < 100)
          os::sleep_for(Seconds{0.01});
        const Status status = ranks.barrier().wait();
        return status ? "no error" : status.error().message;
      },
      adjust_names);
  ASSERT_TRUE(world.reaches_stage(4));
  kill(world.pid(0), SIGKILL);
  os::sleep_for(Seconds{0.2});
  world.state().stage = 100;
  ASSERT_TRUE(world.wait(Seconds{5}));
  for (const int rank : {1, 2, 3})
    EXPECT_THAT(world.result(rank), HasSubstr("rank 0 (s/0) at s0: connection lost"));
}

TEST_P(DeathTest, StoppedRankIsNamedByAllOthers) {
  ForkedWorld world(4);
  world.start(
      GetParam(),
      [](Communicator& ranks, SharedTestState& state) {
        ++state.stage;
        return reduce_until_error(ranks, 1000);
      },
      adjust_names);
  ASSERT_TRUE(world.reaches_stage(4));
  const Seconds stopped_at = os::monotonic_now();
  kill(world.pid(3), SIGSTOP);
  ASSERT_TRUE(world.wait(kPeerTimeout + Seconds{8}, {3}));
  for (const int rank : {0, 1, 2}) {
    EXPECT_THAT(world.result(rank), HasSubstr("rank 3 (s/3) at s")) << rank;
    EXPECT_LT(world.ended_at(rank) - stopped_at, kPeerTimeout + Seconds{2}) << rank;
  }
}

TEST(ProgressTimeout, NamesTheRankThatHasNotCalled) {
  for (const TestLayout layout : {TestLayout::kShm, TestLayout::kTcp}) {
    std::atomic<int> waiting = 3;
    run_all(
        layout, 4,
        [&](Communicator& world) {
          std::vector<float> data(100000);
          const auto reduce = [&] {
            return world
                .all_reduce(data.data(), data.data(), data.size(), DataType::kF32, ReduceOp::kSum)
                .wait();
          };
          EXPECT_TRUE(reduce());
          if (world.rank().value == 1) {
            while (waiting > 0)
              os::sleep_for(Seconds{0.01});
            return;
          }
          const Status status = reduce();
          ASSERT_FALSE(status);
          EXPECT_EQ(status.error().code, Code::kTimeout);
          EXPECT_THAT(status.error().message,
                      HasSubstr("all_reduce of 391 KiB: no progress for 1 s: rank 1 at s"));
          EXPECT_THAT(status.error().message, HasSubstr("has not called it"));
          // The error stays, for relatives as well.
          EXPECT_EQ(world.barrier().wait().error().message, status.error().message);
          EXPECT_FALSE(world.split(0));
          --waiting;
        },
        [](int, CommunicatorOptions& options) { options.progress_timeout = Seconds{1.0}; });
  }
}

TEST(ProgressTimeout, NamesTheRankThatDoesNotReceive) {
  std::atomic<bool> failed = false;
  run_all(
      TestLayout::kMixed, 3,
      [&](Communicator& world) {
        if (world.rank().value == 0) {
          const std::vector<char> data(1 << 20);
          const Status status = world.send(data.data(), data.size(), DataType::kU8, Rank{2}).wait();
          EXPECT_FALSE(status);
          EXPECT_THAT(status.error().message, HasSubstr("send of 1 MiB: no progress for 500 ms: "
                                                        "rank 2 at s1 has not called it"));
          failed = true;
        }
        while (!failed)
          os::sleep_for(Seconds{0.01});
      },
      [](int, CommunicatorOptions& options) { options.progress_timeout = Seconds{0.5}; });
}

TEST(ProgressTimeout, LeavesSlowButLivingOperationsAlone) {
  run_all(
      TestLayout::kTcp, 2,
      [&](Communicator& world) {
        for (int i = 0; i < 4; ++i) {
          if (world.rank().value == 1) os::sleep_for(Seconds{0.3});
          EXPECT_TRUE(world.barrier().wait());
        }
      },
      [](int, CommunicatorOptions& options) { options.progress_timeout = Seconds{1.5}; });
}

TEST(Mistakes, DifferentCountsAreAnErrorOnAllRanks) {
  // Small beside small, small beside large, large beside large.
  for (const auto& [first, second] : {std::pair<std::size_t, std::size_t>{10, 11},
                                      {10, 1 << 20},
                                      {1 << 20, 10},
                                      {1 << 20, (1 << 20) + 64}}) {
    run_all(
        TestLayout::kShm, 2,
        [&, counts = std::vector<std::size_t>{first, second}](Communicator& world) {
          std::vector<std::uint8_t> data(2 << 20);
          const std::size_t count = counts[world.rank().index()];
          Handle handle = world.rank().value == 0
                              ? world.send(data.data(), count, DataType::kU8, Rank{1})
                              : world.recv(data.data(), count, DataType::kU8, Rank{0});
          // A small message is sent before its receiver objects; the next one then is not.
          Status status = handle.wait();
          if (status) status = world.recv(data.data(), 1, DataType::kU8, Rank{1}).wait();
          ASSERT_FALSE(status);
          EXPECT_EQ(status.error().code, Code::kInvalidInput);
          EXPECT_THAT(status.error().message, HasSubstr("call it with the same count"));
        },
        [](int, CommunicatorOptions& options) { options.peer_timeout = Seconds{1.0}; });
  }
}

TEST(Mistakes, WrongArgumentsFailAtOnce) {
  run_all(TestLayout::kShm, 1, [](Communicator& world) {
    int value = 7;
    EXPECT_EQ(world.send(&value, 1, DataType::kI32, Rank{1}).wait().error().message,
              "send: rank 1 is not in the communicator: it has ranks 0 to 0");
    EXPECT_EQ(world.broadcast(&value, 1, DataType::kI32, Rank{-1}).wait().error().code,
              Code::kInvalidInput);
    auto nobody = world.split(-1);
    ASSERT_TRUE(nobody);
    EXPECT_EQ(nobody->world_size(), 0);
    EXPECT_FALSE(nobody->barrier().wait());
    EXPECT_TRUE(world.barrier().wait());
  });
  const Exchange none = [](const std::string&) -> Result<std::vector<std::string>> {
    return Error{Code::kNotFound, "no launcher"};
  };
  EXPECT_EQ(Communicator::connect(Rank{2}, 2, none, {}).error().code, Code::kInvalidInput);
  EXPECT_EQ(Communicator::connect(Rank{0}, 2, none, {}).error().message, "no launcher");
  for (const double impossible : {-1.0, 1e6, std::numeric_limits<double>::quiet_NaN()}) {
    CommunicatorOptions never;
    never.peer_timeout = Seconds{impossible};
    EXPECT_THAT(Communicator::connect(Rank{0}, 2, none, never).error().message,
                testing::HasSubstr("the peer timeout must be positive"));
  }
  for (const int connections : {0, kConnectionsMax + 1}) {
    CommunicatorOptions many;
    many.connections = connections;
    EXPECT_THAT(Communicator::connect(Rank{0}, 2, none, many).error().message,
                testing::HasSubstr("connections to a peer are not 1 to 1023"));
  }
  CommunicatorOptions options;
  options.listen_address = "localhost";
  EXPECT_EQ(Communicator::connect(Rank{0}, 2, none, options).error().message,
            "address 'localhost': write it in numbers, as 10.0.0.1");
}

TEST(Leaving, NamesARankThatLeftOnlyWhereAnOperationWaitsForIt) {
  for (const TestLayout layout : {TestLayout::kShm, TestLayout::kTcp}) {
    run_all(layout, 3, [](Communicator& world) {
      EXPECT_TRUE(world.barrier().wait());
      auto pair = world.split(world.rank().value == 1 ? -1 : 0);
      ASSERT_TRUE(pair);
      if (world.rank().value == 1) return;
      os::sleep_for(Seconds{0.3});
      // The others go on without it.
      for (int i = 0; i < 10; ++i)
        EXPECT_TRUE(pair->barrier().wait());
      const Status status = world.barrier().wait();
      ASSERT_FALSE(status);
      EXPECT_THAT(status.error().message, HasSubstr("rank 1 at s"));
      EXPECT_THAT(status.error().message, HasSubstr("left the job"));
    });
  }
}

TEST(Leaving, BytesSentBeforeTheEndArrive) {
  for (const TestLayout layout : {TestLayout::kShm, TestLayout::kTcp}) {
    run_all(layout, 2, [](Communicator& world) {
      std::vector<std::uint8_t> data(3 << 20, static_cast<std::uint8_t>(1 - world.rank().value));
      if (world.rank().value == 0) {
        (void)world.send(data.data(), data.size(), DataType::kU8, Rank{1});
        // Closes at once; the destructor waits for the bytes. `data` outlives it.
        const Communicator closing = std::move(world);
        (void)closing;
        return;
      }
      os::sleep_for(Seconds{0.2});
      EXPECT_TRUE(world.recv(data.data(), data.size(), DataType::kU8, Rank{0}).wait());
      EXPECT_EQ(data.front(), 1);
      EXPECT_EQ(data.back(), 1);
    });
  }
}

int count_entries(const char* folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder))
    ++count;
  return count;
}

// A thread that was joined may stay listed for a moment.
int count_threads() {
  os::sleep_for(Seconds{0.05});
  return count_entries("/proc/self/task");
}

TEST(Leaving, LeavesNoDescriptorAndNoThread) {
  std::thread([] {}).join();  // with the first thread ThreadSanitizer starts one of its own
  const int fds = count_entries("/proc/self/fd");
  const int threads = count_threads();
  for (const TestLayout layout : {TestLayout::kShm, TestLayout::kTcp, TestLayout::kMixed})
    run_all(layout, 4, [](Communicator& world) { EXPECT_TRUE(world.split(0)); });
  EXPECT_EQ(count_entries("/proc/self/fd"), fds);
  EXPECT_EQ(count_threads(), threads);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve terabytes
// Lets this process map 32 MiB more than it has, and no more.
void run_short_of_memory() {
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  sizes >> pages;
  const rlimit limit{.rlim_cur = pages * static_cast<rlim_t>(getpagesize()) + (32U << 20),
                     .rlim_max = RLIM_INFINITY};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

TEST(Memory, RankThatHasNoneLeftSaysSoAndTheOthersNameIt) {
  const auto folder = os::TempFolder::create();
  ASSERT_TRUE(folder);
  ForkedWorld world(4);
  world.start(
      TestLayout::kTcp,
      [](Communicator& ranks, SharedTestState&) {
        std::vector<float> in(std::size_t{16} << 20, 1.0F);
        std::vector<float> out(in.size() / 4);
        EXPECT_TRUE(ranks.barrier().wait());
        if (ranks.rank().value == 1) run_short_of_memory();
        const Status status =
            ranks.reduce_scatter(in.data(), out.data(), out.size(), DataType::kF32, ReduceOp::kSum)
                .wait();
        return status ? "no error" : status.error().message;
      },
      [&](CommunicatorOptions& options) {
        adjust_names(options);
        options.forced.algorithm = Algorithm::kHalving;
        options.flight_dir = folder->path();
      });
  ASSERT_TRUE(world.wait(kPeerTimeout + Seconds{8}));
  for (const int rank : {0, 1, 2, 3}) {
    EXPECT_THAT(world.result(rank), HasSubstr("rank 1 (s/1) at s")) << rank;
    EXPECT_THAT(world.result(rank), HasSubstr("no memory is left for the 64 MiB")) << rank;
  }
  // Its flight file tells what was under way.
  const auto view = read_flight_file(folder->path() + "/regatta-flight-job-rank1.json");
  ASSERT_TRUE(view) << view.error().message;
  const OperationView& last = view->groups[0].collective;
  EXPECT_THAT(describe_call(last.call, 0), HasSubstr("reduce_scatter"));
  EXPECT_EQ(last.status, OperationStatus::kRuns);
}

TEST(Memory, RankThatHasNoneLeftInsideAServerSaysSoAndTheOthersNameIt) {
  ForkedWorld world(4);
  world.start(
      TestLayout::kShm,
      [](Communicator& ranks, SharedTestState&) {
        const std::vector<std::size_t> counts(4, std::size_t{4} << 20);
        std::vector<float> in(std::size_t{16} << 20, 1.0F);
        std::vector<float> out(in.size() / 4);
        EXPECT_TRUE(ranks.barrier().wait());
        if (ranks.rank().value == 1) run_short_of_memory();
        const Status status = ranks
                                  .reduce_scatter_v(in.data(), {.counts = counts, .offsets = {}},
                                                    out.data(), DataType::kF32, ReduceOp::kSum)
                                  .wait();
        return status ? "no error" : status.error().message;
      },
      adjust_names);
  ASSERT_TRUE(world.wait(kPeerTimeout + Seconds{8}));
  for (const int rank : {0, 1, 2, 3})
    EXPECT_THAT(world.result(rank),
                HasSubstr("rank 1 (s/1) at s0: reduce_scatter_v: no memory is left for the 64 MiB"))
        << rank;
}
#endif

Seconds cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

TEST(Idleness, FourIdleRanksTakeNextToNoProcessorTime) {
  for (const TestLayout layout : {TestLayout::kShm, TestLayout::kTcp}) {
    std::atomic<double> used = 0;
    run_all(layout, 4, [&](Communicator& world) {
      EXPECT_TRUE(world.barrier().wait());
      os::sleep_for(Seconds{0.1});
      const Seconds before = cpu_time();
      os::sleep_for(Seconds{1.5});
      if (world.rank().value == 0) used = (cpu_time() - before).value / 1.5;
      EXPECT_TRUE(world.barrier().wait());
    });
    RecordProperty("cpu_share", std::to_string(used.load()));
    EXPECT_LT(used.load(), 0.01);
  }
}

}  // namespace
}  // namespace regatta::comm
