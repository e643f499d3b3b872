// Processes of tenants whose memory does not fit together, under a real daemon, each on a device of
// its own that only counts: what they have there together is what the daemon allows.
#include "regatta/gpu/sharing/internal/swap/device_residency.h"

#include <algorithm>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"
#include "regatta/gpu/sharing/internal/swap/fake_swap_device.h"

namespace regatta::sharing {
namespace {

using namespace regatta::literals;
constexpr std::uint64_t kBlock = SwappableMemory::kBlock;

struct SharedState {
  std::atomic<bool> stop = false;
  std::atomic<bool> pause = false;   // of all but the first
  std::atomic<long long> there = 0;  // blocks on the devices, together
  std::atomic<long long> most_there = 0;
  std::atomic<int> turns[16] = {};  // that a process saw its memory come back, or first come
  std::atomic<int> works[16] = {};
};

// Counts what all processes have together.
class CountedDevice : public FakeSwapDevice {
 public:
  explicit CountedDevice(SharedState& state) : state_(state) {}
  bool map(std::uint64_t address, std::uint64_t bytes) override {
    const long long there = state_.there += static_cast<long long>(bytes / kBlock);
    long long most = state_.most_there;
    while (there > most && !state_.most_there.compare_exchange_weak(most, there))
      continue;
    return FakeSwapDevice::map(address, bytes);
  }
  void unmap(std::uint64_t address, std::uint64_t bytes) override {
    FakeSwapDevice::unmap(address, bytes);
    state_.there -= static_cast<long long>(bytes / kBlock);
  }

 private:
  SharedState& state_;
};

class DeviceResidencyTest : public testing::Test {
 protected:
  static DaemonOptions options() {
    // A link so fast that stays are short.
    return {.policy = REGATTA_SHARE_BURST_WEIGHT,
            .host_memory = Bytes{1000 * kBlock},
            .residency = {.link = BytesPerSecond{100e9}, .timeout = Seconds{1.0}}};
  }
  pid_t start(const std::string& name, std::uint64_t quota,
              const std::function<int(Client& client)>& body) {
    const pid_t pid = start_process([&, this] {
      os::UniqueFd page;
      const nlohmann::json request{{"request", "join"},        {"name", name},
                                   {"memory", {{"0", quota}}}, {"overcommit", true},
                                   {"lease_s", lease_s_},      {"compute_ppm", 10'000}};
      const auto answer = send_control_request(daemon_.socket(), request.dump(), &page);
      if (!answer) std::fprintf(stderr, "%s\n", answer.error().message.c_str());
      if (!answer) return 99;
      const auto client = Client::connect(page.get(), kTimeout);
      return client ? body(**client) : 98;
    });
    pids_.push_back(pid);
    return pid;
  }
  // Has so many blocks, writes to them and finds them as they were, whenever it may.
  pid_t start_worker(int number, int blocks) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(blocks) * kBlock;
    return start("t" + std::to_string(number), bytes,
                 [=, this](Client& client) { return work(client, number, blocks); });
  }
  int work(Client& client, int number, int blocks) {
    CountedDevice device(*state_);
    DeviceResidency residency(client, 0, device, 4 * kBlock);
    const auto address = residency.allocate(nullptr, static_cast<std::uint64_t>(blocks) * kBlock);
    EXPECT_IN_TENANT(address.has_value());
    std::uint64_t moved = ~0ULL;
    for (int value = 0; !state_->stop; ++value) {
      if (state_->pause && number != 0) {
        os::sleep_for(1.0_ms);
        continue;
      }
      residency.enter();
      residency.launches();
      for (int i = 0; i < blocks; ++i) {
        int& content = device.at(*address + static_cast<std::uint64_t>(i) * kBlock);
        if (value != 0 && content != number * 1000 + i) {
          std::fprintf(stderr, "tenant %d: block %d is %d\n", number, i, content);
          return 1;
        }
        content = number * 1000 + i;
      }
      residency.leave();
      ++state_->works[number];
      const std::uint64_t now_moved = residency.totals().moved_in;
      if (now_moved != moved) ++state_->turns[number];
      moved = now_moved;
      os::sleep_for(Seconds{0.0002});
    }
    EXPECT_IN_TENANT(device.errors.empty());
    EXPECT_IN_TENANT(residency.free(*address) && device.used == 0 && device.host_used == 0);
    return 0;
  }
  void wait_for_turns(int count, int turns) {
    const Seconds end = os::monotonic_now() + 30.0_s;
    for (int i = 0; i < count; ++i) {
      while (state_->turns[i] < turns && os::monotonic_now() < end)
        os::sleep_for(1.0_ms);
      EXPECT_GE(state_->turns[i], turns) << "tenant " << i;
    }
  }
  nlohmann::json memory_of(const std::string& name) const {
    const auto listing = daemon_.query({{"request", "ps"}});
    if (!listing) return {};
    for (const auto& tenant : (*listing)["tenants"])
      if (tenant["name"] == name)
        return tenant["memory"].empty() ? nlohmann::json() : tenant["memory"][0];
    return {};
  }
  void finish() {
    state_->stop = true;
    for (const pid_t pid : pids_)
      EXPECT_EQ(wait_status(pid), 0);
    pids_.clear();
    EXPECT_LE(state_->most_there, 100);
  }

  unsigned lease_s_ = 0;  // of tenants that start from now on
  Shared<SharedState> state_;
  TestDaemon daemon_{{Bytes{100 * kBlock}}, options()};
  std::vector<pid_t> pids_;
};

TEST_F(DeviceResidencyTest, EightTenantsOfFourFifthsTakeTurnsAndKeepTheirMemory) {
  for (int i = 0; i < 8; ++i)
    start_worker(i, 80);
  wait_for_turns(8, 3);
  finish();
}

TEST_F(DeviceResidencyTest, NothingMovesWhileAllFit) {
  for (int i = 0; i < 4; ++i)
    start_worker(i, 25);
  wait_for_turns(4, 1);
  os::sleep_for(Seconds{0.3});
  for (int i = 0; i < 4; ++i) {
    const auto memory = memory_of("t" + std::to_string(i));
    EXPECT_EQ(memory["resident_bytes"], 25 * kBlock);
    EXPECT_EQ(memory["swapped_bytes"], 0);
    EXPECT_EQ(memory["moved_out_bytes"], 0);
    EXPECT_GT(state_->works[i], 50);
  }
  finish();
}

TEST_F(DeviceResidencyTest, TheIdleGiveNoMoreThanOthersLack) {
  start_worker(1, 80);
  wait_for_turns(1 + 0, 0);
  while (state_->turns[1] == 0)
    os::sleep_for(1.0_ms);
  state_->pause = true;
  start_worker(0, 60);
  while (state_->turns[0] == 0)
    os::sleep_for(1.0_ms);
  os::sleep_for(Seconds{0.2});
  EXPECT_EQ(memory_of("t0")["resident_bytes"], 60 * kBlock);
  EXPECT_EQ(memory_of("t1")["resident_bytes"], 40 * kBlock);
  EXPECT_EQ(memory_of("t1")["used_bytes"], 80 * kBlock);
  finish();
}

// Its launches wait until all memory of the tenant is there, also that of a process that is idle.
TEST_F(DeviceResidencyTest, WorkOfAProcessWithoutMemoryBringsBackThatOfAnIdleOneOfItsTenant) {
  start("t1", 80 * kBlock, [&](Client& client) {
    const pid_t other = start_process([&] {
      const auto own = Client::connect(kTimeout);
      EXPECT_IN_TENANT(own);
      while (state_->turns[0] == 0)
        os::sleep_for(1.0_ms);
      CountedDevice device(*state_);
      const std::atomic<int> calls = 1;
      DeviceResidency residency(**own, 0, device, 4 * kBlock, &calls);
      residency.watch();
      while (!state_->stop)
        os::sleep_for(1.0_ms);
      return 0;
    });
    const int status = work(client, 1, 80);
    return status != 0 ? status : wait_status(other);
  });
  while (state_->turns[1] == 0)
    os::sleep_for(1.0_ms);
  state_->pause = true;
  start_worker(0, 60);
  const Seconds end = os::monotonic_now() + 10.0_s;
  while ((state_->turns[0] == 0 || memory_of("t1")["resident_bytes"] != 80 * kBlock) &&
         os::monotonic_now() < end)
    os::sleep_for(1.0_ms);
  EXPECT_LT(os::monotonic_now().value, end.value) << "t1 waits for its memory";
  finish();
}

TEST_F(DeviceResidencyTest, WhoIsKilledInTheMiddleGivesAllBack) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3; ++i)
      start_worker(i, 80);
    os::sleep_for(Seconds{0.02 + 0.013 * round});
    ::kill(at(pids_, round % 3), SIGKILL);
    EXPECT_NE(wait_status(at(pids_, round % 3)), 0);
    pids_.erase(pids_.begin() + round % 3);
    for (auto& turns : state_->turns)
      turns = 0;
    state_->there = 0;  // what the dead one had counts there for ever
    const Seconds end = os::monotonic_now() + 20.0_s;
    const auto rest = [&] {
      int sum = 0;
      for (const auto& turns : state_->turns)
        sum += turns > 0 ? 1 : 0;
      return sum;
    };
    while (rest() < 2 && os::monotonic_now() < end)
      os::sleep_for(1.0_ms);
    EXPECT_EQ(rest(), 2);
    state_->most_there = 0;
    finish();
    state_->stop = false;
    state_->most_there = 0;
  }
}

TEST_F(DeviceResidencyTest, ADaemonThatIsKilledLosesNothing) {
  for (int i = 0; i < 4; ++i)
    start_worker(i, 80);
  wait_for_turns(4, 1);
  for (int round = 0; round < 5; ++round) {
    daemon_.kill();
    os::sleep_for(Seconds{0.005 * round});
    daemon_.start();
    for (auto& turns : state_->turns)
      turns = 0;
    wait_for_turns(4, 2);
  }
  finish();
}

TEST_F(DeviceResidencyTest, WhoDoesNotObeyIsNotWaitedForAndNamed) {
  const pid_t first = start_worker(0, 50);
  start_worker(1, 50);
  wait_for_turns(2, 1);
  ::kill(first, SIGSTOP);
  state_->turns[1] = 0;
  start_worker(2, 50);
  const Seconds end = os::monotonic_now() + 20.0_s;
  while ((state_->turns[1] == 0 || state_->turns[2] < 2) && os::monotonic_now() < end)
    os::sleep_for(1.0_ms);
  EXPECT_GE(state_->turns[1], 1);
  EXPECT_GE(state_->turns[2], 2);
  ::kill(first, SIGCONT);
  wait_for_turns(3, 1);
  finish();
}

TEST_F(DeviceResidencyTest, MemoryThatStaysIsMadeRoomForAndLeavesTheLargestTenantIts) {
  start_worker(0, 60);
  start_worker(1, 60);
  wait_for_turns(2, 1);
  start("pinned", 80 * kBlock, [&](Client& client) {
    EXPECT_IN_TENANT(client.reserve(0, 30 * kBlock).has_value());
    EXPECT_IN_TENANT(!client.reserve(0, 20 * kBlock).has_value());
    EXPECT_IN_TENANT(client.reserve(0, 10 * kBlock).has_value());
    return 0;
  });
  EXPECT_EQ(wait_status(pids_.back()), 0);
  pids_.pop_back();
  finish();
}

TEST_F(DeviceResidencyTest, AQuotaHoldsForWhatIsAwayToo) {
  start("a", 50 * kBlock, [&](Client& client) {
    FakeSwapDevice device;
    DeviceResidency residency(client, 0, device, 4 * kBlock);
    const auto a = residency.allocate(nullptr, 40 * kBlock);
    EXPECT_IN_TENANT(a.has_value());
    const auto b = residency.allocate(nullptr, 11 * kBlock);
    EXPECT_IN_TENANT(!b.has_value() && b.error().code == Code::kExhausted);
    EXPECT_IN_TENANT(client.reserve(0, 10 * kBlock).has_value());
    EXPECT_IN_TENANT(!client.reserve(0, 1).has_value());
    EXPECT_IN_TENANT(residency.free(*a) && !residency.free(*a));
    EXPECT_IN_TENANT(residency.allocate(nullptr, 40 * kBlock).has_value());
    return 0;
  });
  finish();
}

TEST_F(DeviceResidencyTest, ALeaseKeepsMemoryThereAndEndsWithAPause) {
  lease_s_ = 2;
  start_worker(1, 80);
  while (state_->works[1] == 0)
    os::sleep_for(1.0_ms);
  lease_s_ = 0;
  start_worker(0, 80);
  os::sleep_for(Seconds{0.5});
  EXPECT_EQ(state_->works[0], 0);
  state_->pause = true;  // of the first
  const Seconds end = os::monotonic_now() + 1.0_s;
  while (state_->works[0] == 0 && os::monotonic_now() < end)
    os::sleep_for(1.0_ms);
  EXPECT_GT(state_->works[0], 0);
  finish();
}

TEST_F(DeviceResidencyTest, MayBeNoMoreThanTheHostHolds) {
  for (int i = 0; i < 10; ++i)
    start_worker(i, 100);
  const Seconds end = os::monotonic_now() + 20.0_s;
  while (memory_of("t9").is_null() && os::monotonic_now() < end)
    os::sleep_for(1.0_ms);
  const auto too_many = daemon_.query(
      {{"request", "join"}, {"name", "more"}, {"memory", {{"0", kBlock}}}, {"overcommit", true}});
  ASSERT_FALSE(too_many);
  EXPECT_THAT(too_many.error().message, testing::HasSubstr("0 B of the host's memory are left"));
  const auto plain =
      daemon_.query({{"request", "join"}, {"name", "plain"}, {"memory", {{"0", kBlock}}}});
  ASSERT_FALSE(plain) << "the largest tenant has to fit beside those without over-commit";
  finish();
}

}  // namespace
}  // namespace regatta::sharing
