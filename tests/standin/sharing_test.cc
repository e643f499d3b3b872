// Several processes and one device.
#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <unistd.h>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

using std::chrono::milliseconds;

std::uint64_t bytes_held(const TestDevice& device) {
  std::uint64_t bytes = 0;
  for (const Usage& usage : device.usage())
    bytes += usage.bytes;
  return bytes;
}

// What each process had of a span of the device's time.
std::map<std::uint32_t, Time> busy_between(const std::vector<Interval>& log, Time begin, Time end) {
  std::map<std::uint32_t, Time> busy;
  for (const Interval& interval : log)
    busy[interval.pid] +=
        std::max(Time{}, std::min(end, interval.end) - std::max(begin, interval.start));
  return busy;
}

class Sharing : public testing::Test {
 protected:
  void SetUp() override {
    if (is_real_driver()) GTEST_SKIP() << "asks the stand-in device, which a real driver has not";
  }
};

TEST_F(Sharing, GivesTwoProcessesAllOfTheMemoryAndNoMore) {
  const TestDevice device({"--memory", "256MiB"});
  TestClient first(device, "take_all", "");
  TestClient second(device, "take_all", "");
  const int blocks = std::stoi(first.read_line()) + std::stoi(second.read_line());
  EXPECT_EQ(blocks, 128);
  EXPECT_EQ(bytes_held(device), 256 * kMiB);
}

TEST_F(Sharing, ChargesEveryContext) {
  const TestDevice device({"--memory", "256MiB", "--context-memory", "100MiB"});
  TestClient first(device, "take_all", "");
  EXPECT_EQ(first.read_line(), "78");
}

TEST_F(Sharing, TakesTheMemoryOfAKilledProcessBack) {
  const TestDevice device({"--memory", "256MiB"});
  for (int round = 0; round < 5; ++round) {
    TestClient client(device, "take_all", "");
    ASSERT_EQ(client.read_line(), "128");
    client.kill();
  }
  for (int i = 0; i < 1000 && bytes_held(device) > 0; ++i)
    usleep(1000);
  EXPECT_EQ(bytes_held(device), 0U);
}

TEST_F(Sharing, DividesTheDeviceEvenlyBetweenTwoBusyProcesses) {
  const TestDevice device({});
  TestClient first(device, "keep_busy", "spin_200us");
  TestClient second(device, "keep_busy", "spin_5ms");
  first.read_line();
  second.read_line();
  usleep(600'000);
  const std::vector<Interval> log = device.log();
  ASSERT_FALSE(log.empty());
  const Time end = log.back().end;
  const auto busy = busy_between(log, end - milliseconds(400), end);
  for (const pid_t pid : {first.pid(), second.pid()})
    EXPECT_NEAR(static_cast<double>(busy.at(static_cast<std::uint32_t>(pid)).count()), 200e6, 4e6);
}

TEST_F(Sharing, LeavesTheDeviceToOthersWhenAProcessIsKilled) {
  const TestDevice device({});
  TestClient first(device, "keep_busy", "spin_20ms");
  TestClient second(device, "keep_busy", "spin_5ms");
  first.read_line();
  second.read_line();
  usleep(100'000);
  const auto killed = static_cast<std::uint32_t>(first.pid());
  first.kill();
  usleep(200'000);
  const std::vector<Interval> log = device.log();
  ASSERT_FALSE(log.empty());
  const Time end = log.back().end;
  const auto busy = busy_between(log, end - milliseconds(100), end);
  EXPECT_EQ(busy.contains(killed) ? busy.at(killed) : Time{}, Time{});
  EXPECT_EQ(busy.at(static_cast<std::uint32_t>(second.pid())), milliseconds(100));
}

TEST_F(Sharing, SimulatesTimeAsFastAsItsClientsWait) {
  const TestDevice device({"--simulated"});
  TestClient client(device, "keep_busy", "spin_20ms");
  client.read_line();
  usleep(300'000);
  const std::vector<Usage> usage = device.usage();
  ASSERT_FALSE(usage.empty());
  EXPECT_GT(usage.front().busy, std::chrono::seconds(2)) << "of 0.3 s in which 20 ms kernels ran";
}

}  // namespace
}  // namespace regatta::standin
