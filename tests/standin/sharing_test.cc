// Several processes and one device.
#include <algorithm>
#include <functional>
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

// Work of each process in a span of the device's time.
std::map<std::uint32_t, Time> busy_between(const std::vector<Interval>& log, Time begin, Time end) {
  std::map<std::uint32_t, Time> busy;
  for (const Interval& interval : log)
    busy[interval.pid] +=
        std::max(Time{}, std::min(end, interval.end) - std::max(begin, interval.start));
  return busy;
}

// Whether it comes true before a loaded machine would be done with it too.
bool comes_true(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    usleep(10'000);
  }
  return condition();
}

// Work of each process in the last `span` in which the device worked.
std::map<std::uint32_t, Time> last_busy(const TestDevice& device, Time span) {
  const std::vector<Interval> log = device.log();
  if (log.empty()) return {};
  return busy_between(log, log.back().end - span, log.back().end);
}

Time busy_so_far(const TestDevice& device, pid_t pid) {
  Time busy{};
  for (const Usage& usage : device.usage())
    if (usage.pid == static_cast<std::uint32_t>(pid)) busy += usage.busy;
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

TEST_F(Sharing, LogsTheCopiesOfEachProcessAtTheStatedRate) {
  const TestDevice device({"--copy-speed", "1GB/s"});
  TestClient small(device, "copy", "10000000");
  TestClient large(device, "copy", "30000000");
  EXPECT_EQ(small.read_line(), "done");
  EXPECT_EQ(large.read_line(), "done");
  const std::vector<EngineInterval> log = device.engine_log();
  for (const auto& [client, milliseconds_each] : {std::pair{&small, 10}, {&large, 30}})
    for (const Engine engine : {Engine::kToDevice, Engine::kToHost}) {
      Time time{};
      std::uint64_t bytes = 0;
      for (const EngineInterval& interval : log) {
        if (interval.pid != static_cast<std::uint32_t>(client->pid()) || interval.engine != engine)
          continue;
        time += interval.end - interval.start;
        bytes += interval.bytes;
      }
      EXPECT_EQ(bytes, static_cast<std::uint64_t>(milliseconds_each) * 1'000'000);
      EXPECT_EQ(time, milliseconds(milliseconds_each));
    }
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
  EXPECT_TRUE(comes_true([&] { return bytes_held(device) == 0; }));
}

TEST_F(Sharing, DividesTheDeviceEvenlyBetweenTwoBusyProcesses) {
  const TestDevice device({});
  TestClient first(device, "keep_busy", "spin_200us");
  TestClient second(device, "keep_busy", "spin_5ms");
  first.read_line();
  second.read_line();
  const auto is_even = [&] {
    auto busy = last_busy(device, milliseconds(400));
    return std::ranges::all_of(std::vector{first.pid(), second.pid()}, [&](pid_t pid) {
      const Time part = busy[static_cast<std::uint32_t>(pid)];
      return part > milliseconds(198) && part < milliseconds(202);
    });
  };
  EXPECT_TRUE(comes_true(is_even));
}

TEST_F(Sharing, LeavesTheDeviceToOthersWhenAProcessIsKilled) {
  const TestDevice device({});
  TestClient first(device, "keep_busy", "spin_20ms");
  TestClient second(device, "keep_busy", "spin_5ms");
  first.read_line();
  second.read_line();
  const auto killed = static_cast<std::uint32_t>(first.pid());
  const auto other = static_cast<std::uint32_t>(second.pid());
  const auto share_of = [&](std::uint32_t pid) {
    return last_busy(device, milliseconds(100))[pid];
  };
  ASSERT_TRUE(comes_true([&] { return share_of(killed) > milliseconds(40); }));
  first.kill();
  EXPECT_TRUE(comes_true([&] { return share_of(other) == milliseconds(100); }));
  EXPECT_EQ(share_of(killed), Time{});
}

TEST_F(Sharing, SimulatesTimeAsFastAsItsClientsWait) {
  const TestDevice device({"--simulated"});
  TestClient client(device, "keep_busy", "spin_20ms");
  client.read_line();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(
      comes_true([&] { return busy_so_far(device, client.pid()) > std::chrono::seconds(60); }));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

}  // namespace
}  // namespace regatta::standin
