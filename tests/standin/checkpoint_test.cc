// Processes that are taken off the device and brought back by another one.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "tests/standin/fixture.h"
#include "tests/standin/nvml_abi.h"

namespace regatta::standin {
namespace {

class Checkpoint : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    if (driver_symbol("cuCheckpointProcessLock") == nullptr) GTEST_SKIP() << "an older driver";
  }
  static std::size_t free_bytes() {
    std::size_t bytes = 0;
    EXPECT_EQ(CU(cuMemGetInfo_v2)(&bytes, nullptr), CUDA_SUCCESS);
    return bytes;
  }
  static CUprocessState state_of(pid_t pid) {
    CUprocessState state = -1;
    EXPECT_EQ(CU(cuCheckpointProcessGetState)(pid, &state), CUDA_SUCCESS);
    return state;
  }
  static CUresult lock(pid_t pid, unsigned timeout_ms = 10'000) {
    CUcheckpointLockArgs arguments{};
    arguments.timeoutMs = timeout_ms;
    return CU(cuCheckpointProcessLock)(pid, &arguments);
  }
  static void take_out(pid_t pid) {
    ASSERT_EQ(lock(pid), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCheckpointProcessCheckpoint)(pid, nullptr), CUDA_SUCCESS);
  }
  static void bring_back(pid_t pid) {
    ASSERT_EQ(CU(cuCheckpointProcessRestore)(pid, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCheckpointProcessUnlock)(pid, nullptr), CUDA_SUCCESS);
  }
};

TEST_F(Checkpoint, TakesAProcessOffTheDeviceAndBringsItBackAsItWas) {
  const std::size_t before = free_bytes();
  TestClient other("hold", "0x55");
  const std::string told = other.read_line();
  EXPECT_TRUE(told.ends_with(" 55 55 55 55")) << told;
  const std::size_t with_other = free_bytes();
  ASSERT_LE(with_other, before - 16 * kMiB);
  EXPECT_EQ(state_of(other.pid()), CU_PROCESS_STATE_RUNNING);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(lock(other.pid()), CUDA_SUCCESS);
    EXPECT_EQ(state_of(other.pid()), CU_PROCESS_STATE_LOCKED);
    EXPECT_EQ(free_bytes(), with_other);
    ASSERT_EQ(CU(cuCheckpointProcessCheckpoint)(other.pid(), nullptr), CUDA_SUCCESS);
    EXPECT_EQ(state_of(other.pid()), CU_PROCESS_STATE_CHECKPOINTED);
    EXPECT_EQ(free_bytes(), before);
    ASSERT_EQ(CU(cuCheckpointProcessRestore)(other.pid(), nullptr), CUDA_SUCCESS);
    EXPECT_EQ(state_of(other.pid()), CU_PROCESS_STATE_LOCKED);
    EXPECT_EQ(free_bytes(), with_other);
    ASSERT_EQ(CU(cuCheckpointProcessUnlock)(other.pid(), nullptr), CUDA_SUCCESS);
    EXPECT_EQ(state_of(other.pid()), CU_PROCESS_STATE_RUNNING);
    other.write_line("go on");
    EXPECT_EQ(other.read_line(), told);
  }
}

TEST_F(Checkpoint, GivesUpALockWithoutWaitingLongerThanItsTime) {
  if (is_real_driver()) GTEST_SKIP() << "its kernels end at once";
  TestClient other("keep_busy", "spin_20ms");
  ASSERT_EQ(other.read_line(), "ready");
  usleep(100'000);
  EXPECT_EQ(lock(other.pid(), 50), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(state_of(other.pid()), CU_PROCESS_STATE_RUNNING);
}

TEST_F(Checkpoint, WaitsForWorkThatWasGivenAndBeginsNoMore) {
  TestClient other("keep_busy", "spin_1us");
  ASSERT_EQ(other.read_line(), "ready");
  ASSERT_EQ(lock(other.pid()), CUDA_SUCCESS);
  if (own_device() != nullptr) {
    const auto kernels = [&] {
      std::uint64_t count = 0;
      for (const Usage& usage : own_device()->usage())
        if (usage.pid == static_cast<std::uint32_t>(other.pid())) count += usage.kernels;
      return count;
    };
    const std::uint64_t count = kernels();
    usleep(50'000);
    EXPECT_EQ(kernels(), count);
  }
  EXPECT_EQ(CU(cuCheckpointProcessUnlock)(other.pid(), nullptr), CUDA_SUCCESS);
}

TEST_F(Checkpoint, CallsOfWhoIsAwayWaitUntilItIsBack) {
  TestClient other("hold", "0x77");
  const std::string told = other.read_line();
  take_out(other.pid());
  other.write_line("go on");
  EXPECT_FALSE(other.has_line(200));
  ASSERT_EQ(CU(cuCheckpointProcessRestore)(other.pid(), nullptr), CUDA_SUCCESS);
  EXPECT_FALSE(other.has_line(100)) << "it is back, but locked";
  ASSERT_EQ(CU(cuCheckpointProcessUnlock)(other.pid(), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(other.read_line(), told);
}

TEST_F(Checkpoint, RefusesWhatIsNotNextInItsOrder) {
  TestClient other("hold", "0x11");
  other.read_line();
  const pid_t pid = other.pid();
  EXPECT_EQ(CU(cuCheckpointProcessCheckpoint)(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(CU(cuCheckpointProcessRestore)(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(CU(cuCheckpointProcessUnlock)(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_EQ(lock(pid), CUDA_SUCCESS);
  EXPECT_EQ(lock(pid), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(CU(cuCheckpointProcessRestore)(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  ASSERT_EQ(CU(cuCheckpointProcessCheckpoint)(pid, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCheckpointProcessCheckpoint)(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(CU(cuCheckpointProcessUnlock)(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
  bring_back(pid);
}

TEST_F(Checkpoint, RefusesNumbersThatAreNoProcessOfTheDriver) {
  CUprocessState state = -1;
  EXPECT_EQ(CU(cuCheckpointProcessGetState)(0, &state), CUDA_ERROR_OPERATING_SYSTEM);
  EXPECT_EQ(CU(cuCheckpointProcessGetState)(getpid(), nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuCheckpointProcessGetState)(getppid(), &state), CUDA_ERROR_NOT_INITIALIZED);
  CUcheckpointLockArgs arguments{};
  arguments.reserved0 = 1;
  EXPECT_EQ(CU(cuCheckpointProcessLock)(getpid(), &arguments), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Checkpoint, NamesAThreadOfTheProcess) {
  TestClient other("hold", "0x22");
  other.read_line();
  int thread = -1;
  ASSERT_EQ(CU(cuCheckpointProcessGetRestoreThreadId)(other.pid(), &thread), CUDA_SUCCESS);
  const std::string path = "/proc/" + std::to_string(other.pid()) + "/task/";
  EXPECT_EQ(access((path + std::to_string(thread)).c_str(), F_OK), 0);
}

TEST_F(Checkpoint, WhoDiesWhileItIsAwayLeavesNothingBehind) {
  const std::size_t before = free_bytes();
  {
    TestClient other("hold", "0x33");
    other.read_line();
    take_out(other.pid());
    EXPECT_EQ(free_bytes(), before);
    other.kill();
  }
  TestClient next("hold", "0x44");
  next.read_line();
  take_out(next.pid());
  EXPECT_EQ(free_bytes(), before);
  bring_back(next.pid());
}

TEST_F(Checkpoint, WhoIsAwayIsNotOnTheDeviceForNvml) {
  const auto list = reinterpret_cast<decltype(&nvmlDeviceGetComputeRunningProcesses_v3)>(
      nvml_symbol("nvmlDeviceGetComputeRunningProcesses_v3"));
  nvmlDevice_t device = nullptr;
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device), NVML_SUCCESS);
  TestClient other("hold", "0x66");
  other.read_line();
  const auto is_listed = [&] {
    std::vector<nvmlProcessInfo_t> processes(64);
    unsigned count = 64;
    EXPECT_EQ(list(device, &count, processes.data()), NVML_SUCCESS);
    processes.resize(count);
    return std::ranges::any_of(processes, [&](const nvmlProcessInfo_t& one) {
      return one.pid == static_cast<unsigned>(other.pid());
    });
  };
  EXPECT_TRUE(is_listed());
  take_out(other.pid());
  EXPECT_FALSE(is_listed());
  bring_back(other.pid());
  EXPECT_TRUE(is_listed());
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
}

TEST_F(Checkpoint, MemoryThatOthersKnowMakesItFail) {
  if (is_real_driver()) GTEST_SKIP() << "newer drivers can do it";
  TestClient other("show", "0x1234");
  ASSERT_NE(other.read_line(), "");
  ASSERT_EQ(lock(other.pid()), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCheckpointProcessCheckpoint)(other.pid(), nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(state_of(other.pid()), CU_PROCESS_STATE_FAILED);
  EXPECT_EQ(CU(cuCheckpointProcessUnlock)(other.pid(), nullptr), CUDA_ERROR_ILLEGAL_STATE);
  other.write_line("read");
  EXPECT_EQ(other.read_line(), "") << "its calls fail from now on";
}

// As driver 580 is reported to do.
TEST_F(Checkpoint, WhoFoundNoRoomOnItsWayBackNeverComesBack) {
  if (is_real_driver()) GTEST_SKIP() << "a fault of a version";
  TestClient other("hold", "0x88");
  other.read_line();
  take_out(other.pid());
  {
    TestClient greedy("take_all", "");
    greedy.read_line();
    EXPECT_EQ(CU(cuCheckpointProcessRestore)(other.pid(), nullptr), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(state_of(other.pid()), CU_PROCESS_STATE_CHECKPOINTED);
    greedy.finish();
  }
  EXPECT_EQ(CU(cuCheckpointProcessRestore)(other.pid(), nullptr), CUDA_ERROR_OPERATING_SYSTEM);
}

TEST_F(Checkpoint, AControlOfAProcessThatDiesReturns) {
  if (is_real_driver()) GTEST_SKIP() << "its kernels end at once";
  TestClient other("keep_busy", "spin_20ms");
  ASSERT_EQ(other.read_line(), "ready");
  usleep(100'000);
  std::thread killer([&] {
    usleep(100'000);
    other.kill();
  });
  const pid_t pid = other.pid();
  EXPECT_EQ(lock(pid, 0), CUDA_ERROR_NOT_INITIALIZED);
  killer.join();
}

}  // namespace
}  // namespace regatta::standin
