// Unchanged programs whose memory does not fit on a device together, with the hook: each finds its
// memory as it left it, whatever was swapped out in between and whichever process was killed
// meanwhile.
#include "tests/gpu_swap/over_commit.h"

#include <algorithm>
#include <random>
#include <vector>

namespace regatta::gpu_swap {
namespace {

TEST_F(OverCommit, EightProgramsOfFourFifthsOfADeviceTakeTurnsAndKeepTheirMemory) {
  start_device(40, "800MB/s", Seconds{2.0});
  for (int i = 0; i < 8; ++i)
    start(i, 32 * kMiB);
  const Seconds begin = os::monotonic_now();
  wait_for_turns(8, 3);
  const double seconds = (os::monotonic_now() - begin).value;
  double moved = 0;
  for (int i = 0; i < 8; ++i) {
    const auto memory = memory_of(i);
    EXPECT_EQ(memory["used_bytes"], 32 * kMiB) << i;
    EXPECT_GT(memory["moved_out_bytes"], 32 * kMiB) << i;
    moved += memory["moved_in_bytes"].get<double>();
  }
  std::printf("3 turns of each in %.1f s, %.0f MB came in: %.1f %% of the link's time\n", seconds,
              moved / 1e6, 100 * moved / link_ / seconds);
  EXPECT_LE(device_->most_used_bytes(), 40 * kMiB);
  finish();
}

TEST_F(OverCommit, MovesAtTheSpeedOfTheLink) {
  start_device(200, "300MB/s", Seconds{2.0});
  start(0, 160 * kMiB);
  start(1, 160 * kMiB);
  wait_for_turns(2, 2);  // the memory of the host is pinned now
  // Waits until a move to the device has begun.
  const auto began = [&](long long before) {
    return wait_until([&] { return memory_of(0)["moved_in_bytes"] > before; });
  };
  std::vector<double> rates;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(wait_until([&] { return memory_of(0)["resident_bytes"] < 60 * kMiB; }));
    const long long before = memory_of(0)["moved_in_bytes"];
    ASSERT_TRUE(began(before));
    const long long first = memory_of(0)["moved_in_bytes"];
    const Seconds begin = os::monotonic_now();
    ASSERT_TRUE(wait_until([&] { return memory_of(0)["swapped_bytes"] == 0; }));
    const Seconds end = os::monotonic_now();
    const auto bytes = static_cast<double>(memory_of(0)["moved_in_bytes"].get<long long>() - first);
    std::printf("%.0f MB in %.3f s: %.1f MB/s of %.0f\n", bytes / 1e6, (end - begin).value,
                bytes / (end - begin).value / 1e6, link_ / 1e6);
    rates.push_back(bytes / (end - begin).value);
  }
  std::ranges::sort(rates);
  EXPECT_GT(rates[1], 0.8 * link_) << "the median: a round may be disturbed";
  finish();
}

TEST_F(OverCommit, NothingMovesWhileAllFit) {
  start_device(100, "800MB/s", Seconds{2.0});
  for (int i = 0; i < 3; ++i)
    start(i, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->ready == 3; }));
  wait_for_turns(3, 20);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(memory_of(i)["moved_out_bytes"], 0) << i;
  finish();
}

TEST_F(OverCommit, WhoPausesLeavesTheDeviceToTheOthersAndComesBack) {
  start_device(40, "800MB/s", Seconds{2.0});
  start(0, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > 2; }));
  control_->idle[0] = true;
  start(1, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[1] > 2; }, 5));
  EXPECT_EQ(memory_of(0)["resident_bytes"], 8 * kMiB) << "no more than was lacking";
  const long rounds = control_->rounds[0];
  control_->idle[0] = false;
  ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > rounds; }, 5));
  finish();
}

TEST_F(OverCommit, CopiesOfEveryKindBringBackWhatTheyTouch) {
  start_device(40, "800MB/s", Seconds{2.0});
  start(0, 32 * kMiB, 0, "copying");
  start(1, 32 * kMiB);
  wait_for_turns(2, 10);
  EXPECT_GT(memory_of(0)["moved_in_bytes"], 0);
  finish();
}

// The first one is stopped and cannot leave, so the graph of the second one waits for its 12 MiB.
// Meanwhile the memory of the second one leaves for the third one.
TEST_F(OverCommit, WhoWaitsForTheMemoryOfAGraphLeavesTheDeviceToOthers) {
  start_device(40, "800MB/s", Seconds{2.0});
  const pid_t stopped = start(0, 24 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > 2; }));
  control_->idle[0] = true;
  os::sleep_for(Seconds{0.1});
  ASSERT_EQ(::kill(stopped, SIGSTOP), 0);
  start(1, 8 * kMiB, 0, "graphs");
  ASSERT_TRUE(wait_until([&] { return control_->ready == 2; }));
  os::sleep_for(Seconds{0.2});
  EXPECT_EQ(control_->rounds[1], 0);
  start(2, 16 * kMiB);
  EXPECT_TRUE(wait_until([&] { return control_->rounds[2] > 2; }, 20));
  ASSERT_EQ(::kill(stopped, SIGCONT), 0);
  EXPECT_TRUE(wait_until([&] { return control_->rounds[1] > 2; }, 20));
  finish();
}

// A process of no tenant has 16 MiB of the device, of which the daemon knows nothing.
TEST_F(OverCommit, WhoLacksMemoryThatNobodyCountsGetsItFromTheOthers) {
  start_device(60, "800MB/s", Seconds{2.0});
  start_outside(2, 16 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[2] > 2; }));
  start(0, 24 * kMiB);
  start(1, 24 * kMiB);
  wait_for_turns(2, 3);
  EXPECT_LE(device_->most_used_bytes(), 60 * kMiB);
  finish();
}

TEST_F(OverCommit, ALeaseGivesTheDeviceToOneAloneForItsTime) {
  start_device(100, "800MB/s", Seconds{2.0});
  start(0, 16 * kMiB, 3);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > 2; }));
  start(1, 16 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->ready == 2; }, 2));
  os::sleep_for(Seconds{0.5});
  EXPECT_EQ(control_->rounds[1], 0);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[1] > 2; }, 5)) << "the lease is over";
  finish();
}

TEST_F(OverCommit, WhoIsKilledWhileMemoryMovesLeavesNothingBehind) {
  start_device(40, "800MB/s", Seconds{0.2});
  std::mt19937 random(7);
  const auto below = [&](int limit) { return std::uniform_int_distribution(0, limit - 1)(random); };
  for (int i = 0; i < 4; ++i)
    start(i, 32 * kMiB);
  const char* const wanted = std::getenv("REGATTA_STORM_ROUNDS");
  const int rounds = wanted == nullptr ? 20 : std::atoi(wanted);
  for (int round = 0; round < rounds; ++round) {
    os::sleep_for(Seconds{0.001 * below(300)});
    const int victim = below(4);
    ::kill(pids_[static_cast<std::size_t>(victim)], SIGKILL);
    EXPECT_NE(sharing::wait_status(pids_[static_cast<std::size_t>(victim)]), 0);
    pids_.erase(pids_.begin() + victim);
    // Its name is another's once the daemon knows that it is gone.
    std::vector<bool> is_there(4);
    ASSERT_TRUE(wait_until([&] {
      const auto listing = daemon_->query({{"request", "ps"}});
      return listing && (*listing)["tenants"].size() == 3;
    }));
    const auto listing = daemon_->query({{"request", "ps"}});
    for (const auto& tenant : (*listing)["tenants"])
      is_there[static_cast<std::size_t>(tenant["name"].get<std::string>()[1] - '0')] = true;
    for (int i = 0; i < 4; ++i)
      if (!is_there[static_cast<std::size_t>(i)]) start(i, 32 * kMiB);
    pids_.insert(pids_.begin() + victim, pids_.back());
    pids_.pop_back();
  }
  wait_for_turns(4, 2);
  EXPECT_LE(device_->most_used_bytes(), 40 * kMiB);
  finish();
}

TEST_F(OverCommit, ADaemonThatIsKilledWhileMemoryMovesLosesNothing) {
  start_device(40, "800MB/s", Seconds{0.2});
  for (int i = 0; i < 3; ++i)
    start(i, 32 * kMiB);
  wait_for_turns(3, 1);
  for (int round = 0; round < 8; ++round) {
    os::sleep_for(Seconds{0.011 * (1 + round)});
    daemon_->kill();
    os::sleep_for(Seconds{0.02 * round});
    daemon_->start();
  }
  wait_for_turns(3, 2);
  EXPECT_LE(device_->most_used_bytes(), 40 * kMiB);
  finish();
}

}  // namespace
}  // namespace regatta::gpu_swap
