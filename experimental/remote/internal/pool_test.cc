#include "experimental/remote/internal/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experimental/remote/pool_client.h"

namespace regatta::remote {
namespace {

using namespace regatta::literals;
using testing::HasSubstr;

PoolDevice device(const std::string& server, int gpu, Bytes memory_free, unsigned percent_free) {
  return {.server = server,
          .gpu = gpu,
          .memory = 80_GiB,
          .memory_free = memory_free,
          .compute_free_ppm = percent_free * 10'000};
}

TEST(ChooseDevice, TakesTheOneWhereTheLeastStaysFree) {
  const std::vector<PoolDevice> devices = {device("a:7000", 0, 60_GiB, 100),
                                           device("b:7000", 0, 6_GiB, 100),
                                           device("c:7000", 0, 3_GiB, 100)};
  EXPECT_EQ(choose_device(devices, {4_GiB, 300'000}).value(), 1U);
  EXPECT_EQ(choose_device(devices, {3_GiB, 300'000}).value(), 2U);
  EXPECT_EQ(choose_device(devices, {7_GiB, 300'000}).value(), 0U);
}

TEST(ChooseDevice, LooksAtTheTimeWhereMemoryIsEqualAndThenAtNames) {
  const std::vector<PoolDevice> devices = {
      device("b:7000", 1, 8_GiB, 50), device("b:7000", 0, 8_GiB, 50),
      device("c:7000", 0, 8_GiB, 40), device("a:7000", 0, 8_GiB, 50)};
  EXPECT_EQ(choose_device(devices, {4_GiB, 400'000}).value(), 2U);
  EXPECT_EQ(choose_device(devices, {4_GiB, 500'000}).value(), 3U);
  EXPECT_EQ(choose_device({devices[0], devices[1]}, {4_GiB, 500'000}).value(), 1U);
}

TEST(ChooseDevice, TakesMemoryThatNobodyKnowsLast) {
  PoolDevice unknown = device("a:7000", 0, 0_GiB, 100);
  unknown.memory = unknown.memory_free = std::nullopt;
  EXPECT_EQ(choose_device({unknown, device("b:7000", 0, 70_GiB, 100)}, {4_GiB, 0}).value(), 1U);
  EXPECT_EQ(choose_device({unknown}, {4_GiB, 0}).value(), 0U);
}

TEST(ChooseDevice, LooksOnlyAtServersWithRdmaWhereThatIsNeeded) {
  std::vector<PoolDevice> devices = {device("a:7000", 0, 6_GiB, 100),
                                     device("b:7000", 0, 60_GiB, 100)};
  const auto none = choose_device(devices, {4_GiB, 0, true});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kUnsupported);
  EXPECT_THAT(none.error().message, HasSubstr("--transport tcp"));
  devices[1].has_rdma = true;
  EXPECT_EQ(choose_device(devices, {4_GiB, 0, true}).value(), 1U);
  EXPECT_EQ(choose_device(devices, {4_GiB, 0, false}).value(), 0U);
  EXPECT_THAT(choose_device(devices, {61_GiB, 0, true}).error().message,
              HasSubstr("60 GiB and 0 %, on GPU 0 of b:7000"));
}

TEST(ChooseDevice, SaysTheLargestSliceThatFitsWhenNoneDoes) {
  const std::vector<PoolDevice> devices = {device("a:7000", 0, 20_GiB, 20),
                                           device("b:7000", 1, 3_GiB, 60)};
  const auto by_memory = choose_device(devices, {4_GiB, 300'000});
  ASSERT_FALSE(by_memory);
  EXPECT_EQ(by_memory.error().code, Code::kExhausted);
  EXPECT_EQ(by_memory.error().message,
            "no GPU has 4 GiB and 30 % free; the largest slice that fits is 3 GiB and 30 %, "
            "on GPU 1 of b:7000");
  const auto by_time = choose_device(devices, {1_GiB, 900'000});
  ASSERT_FALSE(by_time);
  EXPECT_THAT(by_time.error().message, HasSubstr("is 3 GiB and 60 %, on GPU 1 of b:7000"));
  EXPECT_THAT(choose_device({}, {1_GiB, 0}).error().message, HasSubstr("no GPU at all"));
}

TEST(PoolDevices, TakesWhatTenantsMayHaveOffWhatThereIs) {
  const auto devices = pool_devices("a:7000", R"({"policy": "fixed",
    "gpus": [{"memory_bytes": 85899345920}, {"memory_bytes": null}],
    "tenants": [{"name": "x", "compute_percent": 30,
                 "memory": [{"gpu": 0, "limit_bytes": 4294967296, "used_bytes": 0}]},
                {"name": "y", "compute_percent": 12.5,
                 "memory": [{"gpu": 0, "limit_bytes": 4294967296}, {"gpu": 1, "limit_bytes": 1}]}]})");
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ((*devices)[0].memory_free, 72_GiB);
  EXPECT_EQ((*devices)[0].compute_free_ppm, 575'000U);
  EXPECT_EQ((*devices)[0].tenants, 2);
  EXPECT_EQ((*devices)[1].memory_free, std::nullopt);
  EXPECT_EQ((*devices)[1].tenants, 1);
}

TEST(PoolDevices, RefusesWhatIsNoListOfGpus) {
  for (const char* const text : {"", "[]", "{}", R"({"gpus": [{}], "tenants": []})",
                                 R"({"gpus": [{"memory_bytes": "x"}], "tenants": []})"})
    EXPECT_FALSE(pool_devices("a:7000", text)) << text;
}

TEST(ParseServers, WantsAHostAndAPortOfEach) {
  EXPECT_THAT(parse_servers("a:7000,b:7001,a:7000").value(),
              testing::ElementsAre("a:7000", "b:7001"));
  for (const char* const text : {"", ",", "a", "a:", "a:b", "a:7000,b"})
    EXPECT_FALSE(parse_servers(text)) << text;
}

TEST(IsSameSecret, ComparesAllOfBoth) {
  EXPECT_TRUE(is_same_secret("abcdef", "abcdef"));
  for (const char* const other : {"", "abcdeg", "bbcdef", "abcde", "abcdefa", "abcdefabcdef"})
    EXPECT_FALSE(is_same_secret(other, "abcdef")) << other;
}

}  // namespace
}  // namespace regatta::remote
