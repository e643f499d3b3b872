#include "regatta/gpu/device.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::gpu {
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
  const auto found = memory(*device);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_GT(found->total, found->available);
  EXPECT_GT(found->used_by_process.value, 1 << 20);
}

TEST(Device, PinsMathThreadsOnceAndSaysWhetherThatWasNew) {
  ::setenv("OPENBLAS_NUM_THREADS", "8", 1);
  EXPECT_TRUE(pin_math_threads_in_environment());
  EXPECT_STREQ(std::getenv("OPENBLAS_NUM_THREADS"), "1");
  EXPECT_STREQ(std::getenv("OMP_NUM_THREADS"), "1");
  EXPECT_FALSE(pin_math_threads_in_environment());
  prepare_process();
}

}  // namespace
}  // namespace regatta::gpu
