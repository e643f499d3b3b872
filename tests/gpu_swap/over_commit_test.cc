// Unchanged programs whose memory does not fit on a device together, with the hook: each finds its
// memory as it left it, whatever went to the host in between and whoever was killed meanwhile.
#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <sys/mman.h>

#include "tests/gpu_swap/board.h"
#include "tests/hook/tenant.h"

namespace regatta::gpu_swap {
namespace {

using hook_test::Device;
using hook_test::How;
using hook_test::kMiB;
using hook_test::TenantProgram;
using vgpu::TestDaemon;

class OverCommit : public testing::Test {
 protected:
  OverCommit() {
    board_fd_ = os::UniqueFd(::memfd_create("board", 0));
    EXPECT_EQ(::ftruncate(board_fd_.get(), sizeof(Board)), 0);
    void* const memory =
        ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, board_fd_.get(), 0);
    board_ = new (memory) Board;
  }
  ~OverCommit() override { ::munmap(board_, sizeof(Board)); }

  void start_device(std::uint64_t mebibytes, const char* speed, Seconds longest_wait) {
    const std::string memory = std::to_string(mebibytes) + "MiB";
    device_ = std::make_unique<Device>(
        std::vector<std::string>{"--memory", memory, "--copy-speed", speed});
    link_ = std::stod(speed) * 1e6;
    vgpu::DaemonOptions options{
        .policy = REGATTA_SHARE_BURST_WEIGHT,
        .host_memory = Bytes{1LL << 32},
        .residences = {
            .link = BytesPerSecond{link_}, .longest_wait = longest_wait, .patience = Seconds{5.0}}};
    daemon_ = std::make_unique<TestDaemon>(
        std::vector<Bytes>{Bytes{static_cast<long long>(mebibytes * kMiB)}}, options);
  }
  // The program of this number, as a tenant of its own with a little more than it takes.
  pid_t start(int number, std::uint64_t bytes, unsigned lease_s = 0) {
    const pid_t pid = vgpu::start_process([&, this] {
      os::UniqueFd page;
      const nlohmann::json request{{"ask", "join"},
                                   {"name", "t" + std::to_string(number)},
                                   {"memory", {{"0", bytes + 4 * kMiB}}},
                                   {"overcommit", true},
                                   {"lease_s", lease_s},
                                   {"compute_ppm", 10'000}};
      const auto answer = vgpu::ask_daemon(daemon_->socket(), request.dump(), &page);
      if (!answer) std::fprintf(stderr, "%s\n", answer.error().message.c_str());
      if (!answer) return 99;
      ::fcntl(page.get(), F_SETFD, 0);
      return TenantProgram::become({REGATTA_SWAP_PROGRAM, std::to_string(number),
                                    std::to_string(board_fd_.get()), std::to_string(bytes)},
                                   hook_test::on(*device_, How::kPreloaded));
    });
    pids_.push_back(pid);
    return pid;
  }
  bool wait_until(const std::function<bool()>& condition, double seconds = 60) const {
    const Seconds end = os::monotonic_now() + Seconds{seconds};
    while (!condition() && os::monotonic_now() < end)
      os::sleep_for(Seconds{0.002});
    return condition();
  }
  // So many times each of them comes to work after another one did.
  void wait_for_turns(int count, int turns) {
    std::vector<long> seen(static_cast<std::size_t>(count), 0);
    std::vector<int> turn(static_cast<std::size_t>(count), 0);
    int last = -1;
    const bool all = wait_until([&] {
      for (int i = 0; i < count; ++i) {
        const long rounds = board_->rounds[i];
        auto& known = seen[static_cast<std::size_t>(i)];
        if (rounds > known && last != i) {
          ++turn[static_cast<std::size_t>(i)];
          last = i;
        }
        known = rounds;
      }
      return *std::min_element(turn.begin(), turn.end()) >= turns;
    });
    EXPECT_TRUE(all) << "least turns of one: " << *std::min_element(turn.begin(), turn.end());
  }
  nlohmann::json memory_of(int number) const {
    const auto books = daemon_->ask({{"ask", "ps"}});
    if (!books) return {};
    for (const auto& tenant : (*books)["tenants"])
      if (tenant["name"] == "t" + std::to_string(number) && !tenant["memory"].empty())
        return tenant["memory"][0];
    return {};
  }
  void finish() {
    board_->stop = true;
    for (const pid_t pid : pids_)
      EXPECT_EQ(vgpu::wait_status(pid), 0);
    pids_.clear();
    EXPECT_TRUE(wait_until([&] { return device_->used_bytes() == 0; }, 5));
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<TestDaemon> daemon_;
  double link_ = 0;
  os::UniqueFd board_fd_;
  Board* board_ = nullptr;
  std::vector<pid_t> pids_;
};

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
  // What came in, from when it began to when it was all there.
  const auto began = [&](long long before) {
    return wait_until([&] { return memory_of(0)["moved_in_bytes"] > before; });
  };
  double worst = 1e18;
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
    worst = std::min(worst, bytes / (end - begin).value);
  }
  EXPECT_GT(worst, 0.8 * link_);
  finish();
}

TEST_F(OverCommit, NothingMovesWhileAllFit) {
  start_device(100, "800MB/s", Seconds{2.0});
  for (int i = 0; i < 3; ++i)
    start(i, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return board_->ready == 3; }));
  wait_for_turns(3, 20);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(memory_of(i)["moved_out_bytes"], 0) << i;
  finish();
}

TEST_F(OverCommit, WhoPausesLeavesTheDeviceToTheOthersAndComesBack) {
  start_device(40, "800MB/s", Seconds{2.0});
  start(0, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return board_->rounds[0] > 2; }));
  board_->idle[0] = true;
  start(1, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return board_->rounds[1] > 2; }, 5));
  EXPECT_EQ(memory_of(0)["resident_bytes"], 8 * kMiB) << "no more than was lacking";
  const long rounds = board_->rounds[0];
  board_->idle[0] = false;
  ASSERT_TRUE(wait_until([&] { return board_->rounds[0] > rounds; }, 5));
  finish();
}

TEST_F(OverCommit, ALeaseGivesTheDeviceToOneAloneForItsTime) {
  start_device(100, "800MB/s", Seconds{2.0});
  start(0, 16 * kMiB, 3);
  ASSERT_TRUE(wait_until([&] { return board_->rounds[0] > 2; }));
  start(1, 16 * kMiB);
  ASSERT_TRUE(wait_until([&] { return board_->ready == 2; }, 2));
  os::sleep_for(Seconds{0.5});
  EXPECT_EQ(board_->rounds[1], 0);
  ASSERT_TRUE(wait_until([&] { return board_->rounds[1] > 2; }, 5)) << "the lease is over";
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
    EXPECT_NE(vgpu::wait_status(pids_[static_cast<std::size_t>(victim)]), 0);
    pids_.erase(pids_.begin() + victim);
    // Its name is another's once the daemon knows that it is gone.
    std::vector<bool> is_there(4);
    ASSERT_TRUE(wait_until([&] {
      const auto books = daemon_->ask({{"ask", "ps"}});
      return books && (*books)["tenants"].size() == 3;
    }));
    const auto books = daemon_->ask({{"ask", "ps"}});
    for (const auto& tenant : (*books)["tenants"])
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
