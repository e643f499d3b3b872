// A device as it is seen from outside.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/standin/fixture.h"
#include "tests/standin/nvml_abi.h"

namespace regatta::standin {
namespace {

class Nvml : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(0, &device_), NVML_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
    DriverTest::TearDown();
  }
  unsigned long long own_bytes() const {
    nvmlProcessInfo_t infos[64];
    unsigned count = 64;
    EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device_, &count, infos), NVML_SUCCESS);
    for (unsigned i = 0; i < count; ++i)
      if (infos[i].pid == static_cast<unsigned>(getpid())) return infos[i].usedGpuMemory;
    return ~0ULL;
  }
  // Samples of this process after `since`; asks until there are some.
  std::vector<nvmlProcessUtilizationSample_t> own_samples(unsigned long long since) const {
    for (int i = 0; i < 600; ++i) {
      std::vector<nvmlProcessUtilizationSample_t> samples(1000);
      unsigned count = 1000;
      if (NVML(nvmlDeviceGetProcessUtilization)(device_, samples.data(), &count, since) ==
          NVML_SUCCESS) {
        samples.resize(count);
        std::erase_if(samples, [](const auto& sample) {
          return sample.pid != static_cast<unsigned>(getpid());
        });
        if (!samples.empty()) return samples;
      }
      usleep(100'000);
    }
    return {};
  }

  static unsigned long long now_us() {
    return static_cast<unsigned long long>(std::chrono::duration_cast<std::chrono::microseconds>(
                                               std::chrono::system_clock::now().time_since_epoch())
                                               .count());
  }

  nvmlDevice_t device_ = nullptr;
};

TEST_F(Nvml, CountsItsStarts) {
  EXPECT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
  unsigned count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(NVML(nvmlShutdown)(), NVML_ERROR_UNINITIALIZED);
  ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlDeviceGetCount_v2)(&count), NVML_SUCCESS);
  EXPECT_GE(count, 1U);
}

TEST_F(Nvml, FindsADeviceByAllItsNames) {
  char uuid[96];
  nvmlPciInfo_t pci{};
  nvmlDevice_t found = nullptr;
  ASSERT_EQ(NVML(nvmlDeviceGetUUID)(device_, uuid, sizeof uuid), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByUUID)(uuid, &found), NVML_SUCCESS);
  EXPECT_EQ(found, device_);
  ASSERT_EQ(NVML(nvmlDeviceGetPciInfo_v3)(device_, &pci), NVML_SUCCESS);
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByPciBusId_v2)(pci.busId, &found), NVML_SUCCESS);
  EXPECT_EQ(found, device_);
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByUUID)("GPU-none", &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(1000, &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(NVML(nvmlDeviceGetUUID)(device_, uuid, 3), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_STREQ(NVML(nvmlErrorString)(NVML_ERROR_INSUFFICIENT_SIZE), "Insufficient Size");
}

TEST_F(Nvml, HasTheUuidThatCudaHas) {
  char uuid[96];
  CUuuid bytes{};
  ASSERT_EQ(NVML(nvmlDeviceGetUUID)(device_, uuid, sizeof uuid), NVML_SUCCESS);
  ASSERT_EQ(CU(cuDeviceGetUuid_v2)(&bytes, 0), CUDA_SUCCESS);
  std::string digits;
  for (const char byte : bytes.bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(byte));
    digits += two;
  }
  std::string text = uuid;
  std::erase(text, '-');
  EXPECT_EQ(text, "GPU" + digits);
}

TEST_F(Nvml, SaysWhatTheDeviceAndEachProcessHold) {
  nvmlMemory_t before{};
  nvmlMemory_t after{};
  nvmlMemory_v2_t newer{.version = nvml_version<nvmlMemory_v2_t>(2)};
  CUdeviceptr address = 0;
  ASSERT_EQ(NVML(nvmlDeviceGetMemoryInfo)(device_, &before), NVML_SUCCESS);
  const unsigned long long own_before = own_bytes();
  ASSERT_EQ(CU(cuMemAlloc_v2)(&address, 32 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(NVML(nvmlDeviceGetMemoryInfo)(device_, &after), NVML_SUCCESS);
  EXPECT_EQ(after.used - before.used, 32 * kMiB);
  EXPECT_EQ(after.used + after.free, after.total);
  EXPECT_EQ(own_bytes() - own_before, 32 * kMiB);
  ASSERT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2)(device_, &newer), NVML_SUCCESS);
  EXPECT_EQ(newer.used + newer.reserved + newer.free, newer.total);
  newer.version = 2;
  EXPECT_EQ(NVML(nvmlDeviceGetMemoryInfo_v2)(device_, &newer), NVML_ERROR_FUNCTION_NOT_FOUND);
  ASSERT_EQ(CU(cuMemFree_v2)(address), CUDA_SUCCESS);
}

TEST_F(Nvml, SaysHowManyProcessesThereAreWhenThereIsNoRoom) {
  unsigned count = 0;
  EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device_, &count, nullptr),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_GE(count, 1U);
  if (!is_real_driver()) {  // driver 580 crashes
    EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(nullptr, &count, nullptr),
              NVML_ERROR_INVALID_ARGUMENT);
  }
  unsigned old_count = 64;
  nvmlProcessInfo_v1_t old_infos[64];
  EXPECT_EQ(NVML(nvmlDeviceGetComputeRunningProcesses)(device_, &old_count, old_infos),
            NVML_SUCCESS);
  EXPECT_EQ(old_count, count);
}

TEST_F(Nvml, ListsAProcessOnlyWhileItHasAContext) {
  if (is_real_driver()) GTEST_SKIP() << "counts its contexts, which others may have too";
  EXPECT_NE(own_bytes(), ~0ULL);
  ASSERT_EQ(CU(cuCtxDestroy_v2)(context_), CUDA_SUCCESS);
  EXPECT_EQ(own_bytes(), ~0ULL);
  ASSERT_EQ(CU(cuCtxCreate_v2)(&context_, 0, 0), CUDA_SUCCESS);
}

TEST_F(Nvml, KnowsWorkOnlyWhenItsPeriodIsOver) {
  if (is_real_driver()) GTEST_SKIP() << "its kernels do nothing";
  CUstream stream = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const unsigned long long seen = now_us();
  for (int i = 0; i < 400; ++i)
    ASSERT_EQ(launch(kernel("spin_5ms"), stream), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  // Half a second after the end all of the last period was idle.
  nvmlUtilization_t rates{.gpu = 100, .memory = 100};
  EXPECT_FALSE(own_samples(seen).empty());
  for (int i = 0; i < 600 && rates.gpu > 0; ++i) {
    usleep(100'000);
    ASSERT_EQ(NVML(nvmlDeviceGetUtilizationRates)(device_, &rates), NVML_SUCCESS);
  }
  EXPECT_EQ(rates.gpu, 0U);
  const auto samples = own_samples(seen);
  // 2 s of work: at least three whole periods of half a second.
  EXPECT_GE(std::ranges::count_if(samples, [](const auto& sample) { return sample.smUtil == 100; }),
            3);
  for (std::size_t i = 1; i < samples.size(); ++i)
    EXPECT_NEAR(static_cast<double>(samples[i].timeStamp - samples[i - 1].timeStamp), 500'000, 1);
  unsigned count = 0;
  EXPECT_EQ(
      NVML(nvmlDeviceGetProcessUtilization)(device_, nullptr, &count, samples.back().timeStamp),
      NVML_ERROR_NOT_FOUND);
  nvmlProcessesUtilizationInfo_v1_t newer{
      .version = nvml_version<nvmlProcessesUtilizationInfo_v1_t>(1),
      .processSamplesCount = 0,
      .lastSeenTimeStamp = seen,
      .procUtilArray = nullptr};
  EXPECT_EQ(NVML(nvmlDeviceGetProcessesUtilizationInfo)(device_, &newer),
            NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(newer.processSamplesCount, samples.size());
}

}  // namespace
}  // namespace regatta::standin
