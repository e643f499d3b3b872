#include "regatta/os/ethtool.h"

#include <gmock/gmock.h>

namespace regatta::os {
namespace {

TEST(Ethtool, TellsNothingOfADeviceThatCountsNothing) {
  const auto counters = ethtool_counters("lo");
  ASSERT_TRUE(counters) << counters.error().message;
  EXPECT_TRUE(counters->empty());
}

TEST(Ethtool, NamesADeviceThatIsNotThere) {
  for (const std::string name : {"nosuch0", "", "a-name-that-no-device-has"}) {
    const auto counters = ethtool_counters(name);
    ASSERT_FALSE(counters);
    EXPECT_EQ(counters.error().code, Code::kNotFound);
    EXPECT_THAT(counters.error().message, testing::HasSubstr("no network device is called so"));
  }
}

// Whatever driver each has: names without a zero inside, each once or more.
TEST(Ethtool, ReadsWhateverTheDevicesOfThisMachineCount) {
  const auto devices = network_devices();
  ASSERT_TRUE(devices) << devices.error().message;
  for (const std::string& device : *devices) {
    const auto counters = ethtool_counters(device);
    ASSERT_TRUE(counters) << counters.error().message;
    for (const auto& [name, count] : *counters)
      EXPECT_FALSE(name.empty()) << device;
  }
}

}  // namespace
}  // namespace regatta::os
