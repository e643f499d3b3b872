#include "regatta/platform/node_agent/internal/gpu_reader.h"

#include <gmock/gmock.h>

namespace regatta::node_agent {
namespace {

TEST(GpuReader, ReadsUseMemoryAndFailures) {
  const auto reader = GpuReader::open(REGATTA_TEST_NVML);
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_EQ(reader->count(), 3);
  EXPECT_EQ(reader->read(0).use_percent, 93);
  EXPECT_EQ(reader->read(0).memory_percent, 25);
  EXPECT_FALSE(reader->read(0).has_failed);
  EXPECT_TRUE(reader->read(1).has_failed);
  EXPECT_FALSE(reader->read(1).use_percent);
  EXPECT_TRUE(reader->read(2).has_failed);
  EXPECT_FALSE(reader->read(2).use_percent);
}

TEST(GpuReader, SaysThatThereIsNoLibrary) {
  const auto reader = GpuReader::open("libno-such-nvml.so");
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace regatta::node_agent
