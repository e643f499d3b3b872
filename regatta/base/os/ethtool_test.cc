#include <cerrno>
#include <cstring>

#include <gmock/gmock.h>
#include <linux/ethtool.h>

#include "regatta/base/os/netlink.h"

namespace regatta::os {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

// Answers as the kernel does for a driver with these counters: as many as there are, whatever
// room the caller says it has; names without an end where they fill their field.
class Driver {
 public:
  explicit Driver(EthtoolCounters counters) : counters_(std::move(counters)) {}

  int operator()(void* command) {
    const std::uint32_t asked = *static_cast<std::uint32_t*>(command);
    if (asked == fails_at) return error;
    if (asked == grows_at) counters_.resize(counters_.size() + by, {"added", 1});
    const auto count = static_cast<std::uint32_t>(counters_.size());
    if (asked == ETHTOOL_GDRVINFO) static_cast<ethtool_drvinfo*>(command)->n_stats = count;
    if (asked == ETHTOOL_GSTRINGS) write_names(static_cast<ethtool_gstrings*>(command), count);
    if (asked == ETHTOOL_GSTATS) write_values(static_cast<ethtool_stats*>(command), count);
    return 0;
  }

  std::uint32_t fails_at = 0;  // this command, with
  int error = EIO;
  std::uint32_t grows_at = 0;  // with this command, by so many counters
  std::size_t by = 1;

 private:
  void write_names(ethtool_gstrings* to, std::uint32_t count) const {
    EXPECT_EQ(to->string_set, static_cast<std::uint32_t>(ETH_SS_STATS));
    to->len = count;
    auto* place = reinterpret_cast<char*>(to) + sizeof(ethtool_gstrings);
    for (const auto& [name, value] : counters_) {
      std::memset(place, 0, ETH_GSTRING_LEN);
      name.copy(place, ETH_GSTRING_LEN);
      place += ETH_GSTRING_LEN;
    }
  }
  void write_values(ethtool_stats* to, std::uint32_t count) const {
    to->n_stats = count;
    auto* place = reinterpret_cast<char*>(to) + sizeof(ethtool_stats);
    for (const auto& [name, value] : counters_) {
      std::memcpy(place, &value, sizeof(value));
      place += sizeof(value);
    }
  }

  EthtoolCounters counters_;
};

EthtoolCounters some(std::size_t count) {
  EthtoolCounters counters;
  for (std::size_t i = 0; i < count; ++i)
    counters.emplace_back("counter_" + std::to_string(i), i);
  return counters;
}

TEST(Ethtool, ReadsNamesAndValuesInTheDriversOrder) {
  const auto counters = ethtool_counters_by(
      "eth0", Driver({{"rx_prio3_pause", 7}, {"", 0}, {"tx_bytes", 0xffff'ffff'ffff'ffffU}}));
  ASSERT_TRUE(counters) << counters.error().message;
  EXPECT_THAT(*counters, ElementsAre(Pair("rx_prio3_pause", 7), Pair("", 0),
                                     Pair("tx_bytes", 0xffff'ffff'ffff'ffffU)));
  EXPECT_EQ(*ethtool_counters_by("eth0", Driver(some(65'536))), some(65'536));
}

TEST(Ethtool, TakesANameThatFillsItsFieldForNoMore) {
  const std::string whole(ETH_GSTRING_LEN, 'x');
  const auto counters =
      ethtool_counters_by("eth0", Driver({{whole, 1}, {whole.substr(1), 2}, {"next", 3}}));
  ASSERT_TRUE(counters) << counters.error().message;
  EXPECT_THAT(*counters, ElementsAre(Pair(whole, 1), Pair(whole.substr(1), 2), Pair("next", 3)));
}

// Queues that are switched on bring thousands of counters, which the kernel writes all.
TEST(Ethtool, SaysThatCountersChangedBetweenTwoQuestions) {
  for (const int command : {ETHTOOL_GSTRINGS, ETHTOOL_GSTATS}) {
    for (const std::size_t by : {1U, 8192U}) {
      Driver driver(some(3));
      driver.grows_at = static_cast<std::uint32_t>(command);
      driver.by = by;
      const auto counters = ethtool_counters_by("eth0", driver);
      ASSERT_FALSE(counters);
      EXPECT_EQ(counters.error().message, "eth0: its counters changed while they were read");
    }
  }
}

TEST(Ethtool, NamesTheDeviceOfAQuestionThatFails) {
  for (const int command : {ETHTOOL_GDRVINFO, ETHTOOL_GSTRINGS, ETHTOOL_GSTATS}) {
    Driver driver(some(3));
    driver.fails_at = static_cast<std::uint32_t>(command);
    EXPECT_EQ(ethtool_counters_by("eth0", driver).error().message,
              "eth0: its counters cannot be read: input/output error");
    driver.error = ENODEV;
    EXPECT_EQ(ethtool_counters_by("eth0", driver).error().code, Code::kNotFound);
  }
}

TEST(Ethtool, FindsNoCountersWhereTheDriverHasNone) {
  EXPECT_THAT(*ethtool_counters_by("eth0", Driver({})), IsEmpty());
  Driver driver(some(3));
  driver.fails_at = ETHTOOL_GDRVINFO;
  driver.error = EOPNOTSUPP;
  EXPECT_THAT(*ethtool_counters_by("eth0", driver), IsEmpty());
}

TEST(Ethtool, RefusesMoreCountersThanMakeSense) {
  const auto counters = ethtool_counters_by("eth0", Driver(some(65'537)));
  ASSERT_FALSE(counters);
  EXPECT_THAT(counters.error().message, HasSubstr("eth0: it has more counters than can be read"));
}

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
    EXPECT_THAT(counters.error().message, HasSubstr("no network device is called so"));
  }
}

// With every driver, names hold no zero byte and occur at least once.
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
