// Programs whose memory cannot be moved piece by piece leave the device as a whole, by the driver's
// checkpoint calls, and find everything as they left it.
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include "tests/gpu_swap/over_commit.h"

namespace regatta::gpu_swap {
namespace {

constexpr const char* kDriver = REGATTA_DRIVER "/libcuda.so.1";

class Checkpointed : public OverCommit {
 protected:
  ~Checkpointed() override { ::unsetenv("REGATTA_STANDIN_FAULTS"); }
  long long away(int number) const {
    const auto memory = memory_of(number);
    return memory.is_null() ? -1 : memory["swapped_bytes"].get<long long>();
  }
  // Faults of the driver's calls in helpers that begin from now on.
  void set_faults(const std::string& faults) {
    EXPECT_TRUE(os::write_file(folder_.path() + "/faults", faults).has_value());
  }
  void start_device_with_faults(const std::string& faults, int mib = 40) {
    set_faults(faults);
    ::setenv("REGATTA_STANDIN_FAULTS", ("@" + folder_.path() + "/faults").c_str(), 1);
    start_device(mib, "800MB/s", Seconds{2.0}, kDriver);
    ::unsetenv("REGATTA_STANDIN_FAULTS");
  }
  // The first program, which has worked and is idle now.
  void start_idle(std::size_t bytes, const std::string& kind) {
    start(0, bytes, 0, kind);
    ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > 2; }));
    control_->idle[0] = true;
  }
  // Where the process is as a whole, as the daemon tells it; none: it is no client yet.
  static std::optional<unsigned> place_of(pid_t pid) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
      const std::string name = std::filesystem::read_symlink(entry, error).string();
      if (!name.starts_with("/memfd:" REGATTA_CLIENT_PAGE_NAME)) continue;
      const os::UniqueFd file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
      regatta_process process{};
      const auto at = static_cast<off_t>(offsetof(regatta_client_page, process));
      if (::pread(file.get(), &process, sizeof process, at) == sizeof process) return process.state;
    }
    return std::nullopt;
  }
  bool comes_to_work(int number, double seconds) const {
    const long rounds = control_->rounds[number];
    return wait_until([&] { return control_->rounds[number] > rounds; }, seconds);
  }

  os::TempFolder folder_ = os::TempFolder::create("faults").value();
};

TEST_F(Checkpointed, OfEightTenantsTwoThatOnlyLeaveAsAWholeTakeTheirTurnsAsTheOthers) {
  start_device(40, "800MB/s", Seconds{2.0}, kDriver);
  for (int i = 0; i < 8; ++i)
    start(i, 32 * kMiB, 0, i == 2 || i == 5 ? "staying" : "swappable");
  const Seconds begin = os::monotonic_now();
  wait_for_turns(8, 3);
  std::printf("3 turns of each in %.1f s; rounds:", (os::monotonic_now() - begin).value);
  for (int i = 0; i < 8; ++i)
    std::printf(" %ld", control_->rounds[i].load());
  std::printf("\n");
  EXPECT_LE(device_->most_used_bytes(), 40 * kMiB);
  finish();
}

TEST_F(Checkpointed, WhoPausesLeavesAsAWholeAndComesBackWhenItCallsTheDriver) {
  start_device(40, "800MB/s", Seconds{60.0}, kDriver, "2MiB");
  ASSERT_NO_FATAL_FAILURE(start_idle(32 * kMiB, "staying"));
  os::sleep_for(Seconds{0.3});
  EXPECT_EQ(away(0), 0) << "nobody else wants the device";
  start(1, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[1] > 2; }, 20));
  EXPECT_GE(away(0), 34 * static_cast<long long>(kMiB)) << "with its context";
  EXPECT_TRUE(wait_until([&] { return difference() == "0"; }, 5)) << difference();
  control_->idle[0] = false;
  EXPECT_TRUE(comes_to_work(0, 20));
  finish();
}

TEST_F(Checkpointed, NobodyLeavesAsAWholeWhileWhatOthersCanMoveIsEnough) {
  start_device(60, "800MB/s", Seconds{1.0}, kDriver);
  start(0, 8 * kMiB, 0, "staying");
  start(1, 32 * kMiB);
  start(2, 32 * kMiB);
  wait_for_turns(3, 1);  // while they grow little is missing, which those with long stays give
  const Seconds end = os::monotonic_now() + Seconds{3.0};
  while (os::monotonic_now() < end) {
    ASSERT_EQ(away(0), 0) << "or nobody knows";
    os::sleep_for(Seconds{0.01});
  }
  wait_for_turns(3, 2);
  finish();
}

TEST_F(Checkpointed, OthersMakeRoomForAContextThatNobodyKnowsTheSizeOf) {
  start_device(36, "800MB/s", Seconds{2.0}, kDriver, "4MiB");
  start(0, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > 2; }));
  EXPECT_EQ(device_->used_bytes(), 36 * kMiB) << "the device is full";
  start(1, 24 * kMiB);
  EXPECT_TRUE(wait_until([&] { return control_->rounds[1] > 2; }, 20));
  finish();
}

TEST_F(Checkpointed, WithoutTheDriversCallsNothingChanges) {
  start_device(40, "800MB/s", Seconds{2.0});
  start(0, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > 2; }));
  const pid_t refused = start(1, 32 * kMiB, 0, "staying");
  pids_.pop_back();
  EXPECT_EQ(sharing::wait_status(refused), 2) << "out of memory";
  EXPECT_TRUE(comes_to_work(0, 5));
  finish();
}

TEST_F(Checkpointed, ADaemonThatIsKilledWhileOneIsAwayOrOnItsWayLosesNothing) {
  start_device(40, "800MB/s", Seconds{0.2}, kDriver);
  for (int i = 0; i < 3; ++i)
    start(i, 32 * kMiB, 0, i == 0 ? "swappable" : "staying");
  wait_for_turns(3, 1);
  for (int round = 0; round < 12; ++round) {
    os::sleep_for(Seconds{0.017 * (1 + round)});
    daemon_->kill();
    os::sleep_for(Seconds{0.02 * (round % 4)});
    daemon_->start();
  }
  wait_for_turns(3, 2);
  EXPECT_LE(device_->most_used_bytes(), 40 * kMiB);
  finish();
}

TEST_F(Checkpointed, WhoIsKilledWhileItIsAwayOrOnItsWayLeavesNothingBehind) {
  start_device(40, "800MB/s", Seconds{0.2}, kDriver);
  std::mt19937 random(11);
  const auto below = [&](int limit) { return std::uniform_int_distribution(0, limit - 1)(random); };
  for (int i = 0; i < 4; ++i)
    start(i, 32 * kMiB, 0, i % 2 == 0 ? "swappable" : "staying");
  for (int round = 0; round < 12; ++round) {
    os::sleep_for(Seconds{0.001 * below(400)});
    const auto victim = static_cast<std::size_t>(below(4));
    ::kill(pids_[victim], SIGKILL);
    EXPECT_NE(sharing::wait_status(pids_[victim]), 0);
    ASSERT_TRUE(wait_until([&] {
      const auto listing = daemon_->query({{"request", "ps"}});
      return listing && (*listing)["tenants"].size() == 3;
    }));
    start(static_cast<int>(victim), 32 * kMiB, 0, victim % 2 == 0 ? "swappable" : "staying");
    pids_[victim] = pids_.back();
    pids_.pop_back();
  }
  wait_for_turns(4, 2);
  EXPECT_LE(device_->most_used_bytes(), 40 * kMiB);
  finish();
}

TEST_F(Checkpointed, WhoSharesMemoryStays) {
  start_device(40, "800MB/s", Seconds{2.0}, kDriver);
  start(0, 32 * kMiB, 0, "sharing");
  ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > 2; }));
  start(1, 32 * kMiB, 0, "staying");
  wait_for_turns(2, 3);
  EXPECT_GT(memory_of(0)["resident_bytes"], 0) << "what it shares is there";
  finish();
}

TEST_F(Checkpointed, NobodyMayShareWhatWouldLeaveOthersNoRoomIfItStayed) {
  start_device(40, "800MB/s", Seconds{2.0}, kDriver);
  start(0, 32 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[0] > 2; }));
  testing::internal::CaptureStderr();
  const pid_t refused = start(1, 32 * kMiB, 0, "hoarding");
  pids_.pop_back();
  EXPECT_EQ(sharing::wait_status(refused), 3) << "not supported";
  const std::string said = testing::internal::GetCapturedStderr();
  const auto at = said.find("tenant t1: shared and managed memory would keep this process");
  EXPECT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("shared and managed", at + 40), std::string::npos) << "once: " << said;
  EXPECT_TRUE(comes_to_work(0, 5));
  finish();
}

// It would be taken off its device although it shares memory, and the driver would give it up.
TEST_F(Checkpointed, WhoWantsToShareWhileItLeavesMayOnceItIsBack) {
  start_device_with_faults("cuCheckpointProcessLock:1+~2000000", 36);
  ASSERT_NO_FATAL_FAILURE(start_idle(24 * kMiB, "showing"));
  start(1, 8 * kMiB);
  start(2, 8 * kMiB);
  ASSERT_TRUE(wait_until([&] { return place_of(pids_[0]) == REGATTA_PROCESS_CHECKPOINTING; }, 10));
  control_->shows[0] = 1;
  os::sleep_for(Seconds{0.3});
  EXPECT_EQ(place_of(pids_[0]), REGATTA_PROCESS_CHECKPOINTING);
  EXPECT_EQ(control_->shows[0], 1) << "it waits until it is back";
  EXPECT_TRUE(wait_until([&] { return control_->shows[0] == 2; }, 20));
  control_->idle[0] = false;
  EXPECT_TRUE(comes_to_work(0, 5));
  wait_for_turns_of({1, 2}, 2);
  EXPECT_EQ(away(0), 0) << "it stays";
  finish();
}

// The driver does not answer a helper; the daemon does not wait for it.
TEST_F(Checkpointed, ADriverThatHangsStopsOnlyWhomItWasAskedFor) {
  start_device_with_faults("cuCheckpointProcessLock:1+~60000000");
  ASSERT_NO_FATAL_FAILURE(start_idle(24 * kMiB, "staying"));
  start(1, 8 * kMiB);
  start(2, 24 * kMiB);
  // Whichever asked first: at the latest once nobody waits any more for the helper that hangs.
  ASSERT_TRUE(wait_until([&] { return control_->rounds[1] > 2; }, 15)) << "fits beside it";
  const Seconds begin = os::monotonic_now();
  EXPECT_TRUE(daemon_->query({{"request", "ps"}}).has_value());
  EXPECT_LT((os::monotonic_now() - begin).value, 1.0);
  os::sleep_for(Seconds{7.0});  // longer than anybody is waited for
  control_->idle[0] = false;
  EXPECT_TRUE(comes_to_work(0, 5)) << "it was left as it was";
  // A request from before the lack of room was known waits; a later one was refused.
  for (const std::size_t number : {2U, 0U}) {
    ::kill(pids_[number], SIGKILL);
    EXPECT_NE(sharing::wait_status(pids_[number]), 0);
    pids_.erase(pids_.begin() + static_cast<std::ptrdiff_t>(number));
  }
  start(3, 24 * kMiB);
  EXPECT_TRUE(comes_to_work(3, 10)) << "there is room for it now";
  finish();
}

TEST_F(Checkpointed, WhoCameBackLockedIsCountedAndGoesOnOnceTheDriverLetsIt) {
  start_device_with_faults("");
  ASSERT_NO_FATAL_FAILURE(start_idle(24 * kMiB, "staying"));
  start(1, 24 * kMiB);
  ASSERT_TRUE(wait_until([&] { return control_->rounds[1] > 2; }, 20));
  ASSERT_GE(away(0), 24 * static_cast<long long>(kMiB));
  set_faults("cuCheckpointProcessUnlock:1+=801");
  const long rounds = control_->rounds[0];
  control_->idle[0] = false;
  ASSERT_TRUE(wait_until([&] { return away(0) == 0; }, 20));
  os::sleep_for(Seconds{1.5});
  EXPECT_EQ(control_->rounds[0], rounds) << "its calls wait";
  EXPECT_EQ(away(0), 0) << "its memory is there";
  EXPECT_TRUE(wait_until([&] { return difference() == "0"; }, 2)) << difference();
  set_faults("");
  EXPECT_TRUE(comes_to_work(0, 5));
  finish();
}

TEST_F(Checkpointed, WhoCouldNotLeaveAndIsLockedGoesOnOnceTheDriverLetsIt) {
  start_device_with_faults("cuCheckpointProcessCheckpoint:1+=801,cuCheckpointProcessUnlock:1+=801");
  ASSERT_NO_FATAL_FAILURE(start_idle(24 * kMiB, "staying"));
  start(1, 24 * kMiB);
  os::sleep_for(Seconds{2.0});
  control_->idle[0] = false;
  EXPECT_FALSE(comes_to_work(0, 0.5)) << "it was locked";
  EXPECT_EQ(away(0), 0) << "its memory is there";
  set_faults("");
  EXPECT_TRUE(comes_to_work(0, 5));
  finish();
}

TEST_F(Checkpointed, WhomTheDriverCannotTakeGoesOn) {
  ::setenv("REGATTA_STANDIN_FAULTS", "cuCheckpointProcessCheckpoint:1+=801", 1);
  testing::internal::CaptureStderr();
  start_device(40, "800MB/s", Seconds{2.0}, kDriver);
  ::unsetenv("REGATTA_STANDIN_FAULTS");
  ASSERT_NO_FATAL_FAILURE(start_idle(24 * kMiB, "staying"));
  start(1, 24 * kMiB);
  os::sleep_for(Seconds{2.0});
  control_->idle[0] = false;
  EXPECT_TRUE(comes_to_work(0, 5));
  ::kill(pids_[0], SIGKILL);
  EXPECT_NE(sharing::wait_status(pids_[0]), 0);
  pids_.erase(pids_.begin());
  EXPECT_TRUE(comes_to_work(1, 10));
  finish();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("the driver cannot take it off its GPU; what it has there stays"));
}

}  // namespace
}  // namespace regatta::gpu_swap
