#include "regatta/platform/node_agent/internal/device_slices.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace regatta::node_agent {
namespace {

using testing::HasSubstr;

control::ReplicaOrder sliced_order() {
  control::ReplicaOrder order;
  order.key = {.job = 17, .attempt = 2, .replica = 3};
  order.devices = 0b1001;
  order.slice = {.device_milli = 300, .device_memory_mib = 4096};
  return order;
}

TEST(DeviceSlices, AskForThePartOfEachDeviceOfTheReplica) {
  const auto request = nlohmann::json::parse(enroll_request(sliced_order(), "freezer:/a/17.2.3"));
  EXPECT_EQ(request["request"], "enroll");
  EXPECT_EQ(request["name"], "job-17.2.3");
  EXPECT_EQ(request["cgroup"], "freezer:/a/17.2.3");
  EXPECT_EQ(request["compute_ppm"], 300000);
  EXPECT_EQ(request["memory"], (nlohmann::json{{"0", 4294967296}, {"3", 4294967296}}));
}

TEST(DeviceSlices, RefuseADaemonWhereNoProgramWouldLookForIt) {
  const auto slices = DeviceSlices::create("/tmp/other");
  ASSERT_FALSE(slices);
  EXPECT_THAT(slices.error().message, HasSubstr("/run/regatta-gpu/socket alone"));
}

TEST(DeviceSlices, RefuseAReplicaThatTheDaemonCouldNotTellFromOthers) {
  const DeviceSlices slices;
  EXPECT_FALSE(slices.are_enforced());
  const Status status = slices.enroll(sliced_order(), "");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable);
  EXPECT_THAT(status.error().message, HasSubstr("could not be enforced"));
}

}  // namespace
}  // namespace regatta::node_agent
