#include "regatta/platform/node_agent/internal/device_meter.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "regatta/base/core/test_files.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"

namespace regatta::node_agent {
namespace {

using node_protocol::DeviceReadings;
using node_protocol::ReadingSource;
using testing::ElementsAre;

DeviceReadings readings(std::vector<std::uint8_t> use, std::vector<std::uint8_t> memory) {
  DeviceReadings now{.source = ReadingSource::kNvml};
  now.devices = (1U << use.size()) - 1;
  now.use = std::move(use);
  now.memory = std::move(memory);
  return now;
}

TEST(ReadingChanges, SendsAllFirstAndThenWhatHasChangedByTwoPoints) {
  ReadingChanges changes;
  const auto first = changes.next(readings({10, 20, 30}, {1, 2, 3}), 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->devices, 0b111U);
  EXPECT_FALSE(changes.next(readings({11, 20, 30}, {1, 2, 3}), 1));
  const auto second = changes.next(readings({12, 20, 30}, {1, 2, 9}), 2);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->devices, 0b101U);
  EXPECT_THAT(second->use, ElementsAre(12, 30));
  EXPECT_THAT(second->memory, ElementsAre(1, 9));
}

TEST(ReadingChanges, SendsASmallChangeAfterTenSecondsAndOneFromUnknownAtOnce) {
  ReadingChanges changes;
  changes.next(readings({10, 20}, {0, 0}), 0);
  EXPECT_FALSE(changes.next(readings({11, 20}, {0, 0}), 9));
  EXPECT_TRUE(changes.next(readings({11, 20}, {0, 0}), 10));
  const auto unknown = changes.next(readings({11, 255}, {0, 0}), 11);
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->devices, 0b10U);
  changes.forget();
  EXPECT_EQ(changes.next(readings({11, 255}, {0, 0}), 12)->devices, 0b11U);
}

TEST(DeviceRecord, IsReadOnceAllOfItIsThere) {
  const std::string record =
      encode_device_record({.readings = readings({10, 20}, {1, 2}), .failed = 0b10});
  EXPECT_FALSE(decode_device_record(record.substr(0, record.size() - 1))->has_value());
  const auto read = decode_device_record(record + "more");
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->second, record.size());
  EXPECT_EQ((*read)->first.failed, 0b10U);
  EXPECT_THAT((*read)->first.readings.use, ElementsAre(10, 20));
  EXPECT_FALSE(decode_device_record(std::string(8, '\xff')));
}

// A reader that is silent after its first record counts no longer; nobody waits for it.
TEST(DeviceReader, ForgetsAReaderThatHangs) {
  const std::string folder = testing::TempDir() + "device_reader";
  ASSERT_TRUE(os::make_folder(folder));
  const std::string record = encode_device_record({.readings = readings({42}, {7})});
  ASSERT_TRUE(os::write_file(folder + "/record", record));
  ASSERT_TRUE(
      os::write_file(folder + "/reader", "#!/bin/sh\ncat " + folder + "/record\nsleep 60\n"));
  ASSERT_EQ(::chmod((folder + "/reader").c_str(), 0755), 0);
  DeviceReader reader(folder + "/reader");
  std::optional<DeviceState> state;
  for (int round = 0; round < 500 && !state; ++round) {
    state = reader.latest(100);
    if (!state) os::sleep_for(Seconds{0.01});
  }
  ASSERT_TRUE(state);
  EXPECT_EQ(state->readings.use[0], 42);
  EXPECT_TRUE(reader.latest(104));
  EXPECT_FALSE(reader.latest(106));
  EXPECT_FALSE(reader.latest(107)) << "it is not started anew at once";
  ASSERT_TRUE(os::remove_tree(folder));
}

}  // namespace
}  // namespace regatta::node_agent
