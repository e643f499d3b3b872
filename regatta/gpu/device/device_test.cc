#include "regatta/gpu/device/device.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::device {
namespace {

TEST(Device, OpensTheCpuAndDescribesIt) {
  const auto device = open_device({.index = 1});
  ASSERT_TRUE(device) << device.error().message;
  EXPECT_EQ(device->description, "cpu 1: one thread, not held to a share");
  EXPECT_TRUE(bind_compute_thread(*device));
  synchronize(*device);
}

TEST(Device, RefusesAGpuByName) {
  const auto device = open_device({.kind = topo::DeviceKind::kGpu, .index = 3});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, Code::kUnsupported);
  EXPECT_EQ(device.error().message, "device 3: this build drives no GPU; use device type cpu");
}

TEST(Device, RefusesANegativeIndex) {
  const auto device = open_device({.index = -1});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, Code::kInvalidInput);
}

TEST(Device, NamesTheCgroupThatCannotBeJoined) {
  const auto device = open_device({.compute_cgroup = "/no/such/group"});
  ASSERT_TRUE(device);
  const Status bound = bind_compute_thread(*device);
  ASSERT_FALSE(bound);
  EXPECT_THAT(bound.error().message, testing::HasSubstr("/no/such/group"));
}

TEST(Device, ReadsTheMemoryOfTheMachine) {
  const auto device = open_device({});
  ASSERT_TRUE(device);
  const auto found = device_memory(*device);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GT(found->total, found->available);
  EXPECT_GT(found->used_by_process.value, 1 << 20);
}

TEST(Device, PinsMathThreadsOnceAndSaysWhetherThatWasNew) {
  ::setenv("OPENBLAS_NUM_THREADS", "8", 1);
  EXPECT_TRUE(prepare_math_environment());
  EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "1");
  EXPECT_STREQ(std::getenv("OMP_NUM_THREADS"), "1");
  EXPECT_FALSE(prepare_math_environment());
  prepare_process();
}

void work_for(double seconds) {
  const double start = os::thread_cpu_time().value;
  while (os::thread_cpu_time().value - start < seconds) {
  }
}

TEST(ComputeThread, IsAsFastAsItsShareAlsoForShortWorkAfterAWait) {
  const auto root = os::find_cpu_cgroup_root();
  if (!root) GTEST_SKIP() << "no cpu groups here: " << root.error().message;
  const auto parent = os::make_cpu_group(*root, "regatta-test-pace-" + std::to_string(::getpid()));
  ASSERT_TRUE(parent) << parent.error().message;
  const auto group = os::make_limited_group(*parent, "device0", 0.25);
  ASSERT_TRUE(group) << group.error().message;
  double shortest = 1;
  std::thread([&] {
    const auto device = open_device({.cpu_share = 0.25, .compute_cgroup = *group});
    ASSERT_TRUE(device);
    ASSERT_TRUE(bind_compute_thread(*device));
    for (int i = 0; i < 10; ++i) {
      os::sleep_for(Seconds{0.02});  // the quota of the period is fresh
      end_wait();
      const Seconds start = os::monotonic_now();
      work_for(0.001);
      end_operator();
      begin_wait();
      shortest = std::min(shortest, (os::monotonic_now() - start).value);
    }
  }).join();
  EXPECT_GE(shortest, 0.001 / 0.25 * 0.95);
  EXPECT_TRUE(os::remove_cgroup(*parent));
}

TEST(ComputeThread, KeepsItsPaceWhereNoCgroupEnforcesIt) {
  double took = 0;
  std::thread([&] {
    const auto device = open_device({.cpu_share = 0.25});
    ASSERT_TRUE(device);
    ASSERT_TRUE(bind_compute_thread(*device));
    const Seconds start = os::monotonic_now();
    for (int i = 0; i < 20; ++i) {
      work_for(0.001);
      end_operator();
    }
    begin_wait();
    took = (os::monotonic_now() - start).value;
  }).join();
  EXPECT_GE(took, 0.020 / 0.25 * 0.95);
}

TEST(Device, RefusesAShareThatIsNone) {
  for (const double share : {-0.1, 1.5}) {
    const auto device = open_device({.cpu_share = share});
    ASSERT_FALSE(device);
    EXPECT_EQ(device.error().code, Code::kInvalidInput);
  }
}

TEST(ComputeThread, IsNotHeldUpWhereNothingLimitsIt) {
  const double start = os::monotonic_now().value;
  end_wait();
  work_for(0.002);
  end_operator();
  begin_wait();
  EXPECT_LT(os::monotonic_now().value - start, 1);
}

TEST(OpenblasCoreType, ReplacesKernelsThatTheProcessorOutgrew) {
  const VectorInstructions avx512{.avx2_fma = true, .avx512 = true};
  const VectorInstructions avx2{.avx2_fma = true};
  EXPECT_EQ(openblas_core_type("Prescott", avx512), "SKYLAKEX");
  EXPECT_EQ(openblas_core_type("Nehalem", avx2), "HASWELL");
}

TEST(OpenblasCoreType, KeepsKernelsThatUseTheProcessor) {
  const VectorInstructions avx512{.avx2_fma = true, .avx512 = true};
  for (const char* const good : {"SkylakeX", "SKYLAKEX", "Cooperlake", "SapphireRapids", "Zen"})
    EXPECT_EQ(openblas_core_type(good, avx512), "") << good;
  EXPECT_EQ(openblas_core_type("Prescott", {}), "") << "the processor has no more";
  EXPECT_EQ(openblas_core_type("", avx512), "") << "no such library";
}

}  // namespace
}  // namespace regatta::device
