#include "tests/standin/device.h"

#include <algorithm>
#include <vector>

#include <gmock/gmock.h>

namespace regatta::standin {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint64_t kGiB = 1ULL << 30;

Op kernel(Time duration, unsigned width = 1000) {
  return {.kind = OpKind::kKernel, .width = width, .duration = duration};
}

// A device with clients 1 and 2, each with context 1, stream 1 that goes with nothing, the default
// stream 2 and the blocking stream 3.
Device two_clients(const Settings& settings = {}) {
  Device device(settings);
  for (const ClientId client : {1U, 2U}) {
    device.add_client(client, client + 1000);
    device.open_context({client, 1});
    device.open_stream({client, 1}, 1, StreamKind::kNonBlocking);
    device.open_stream({client, 2}, 1, StreamKind::kLegacy);
    device.open_stream({client, 3}, 1, StreamKind::kBlocking);
  }
  return device;
}

std::vector<Notice> run(Device& device, Time now) {
  std::vector<Notice> notices;
  device.advance(now, notices);
  return notices;
}

TEST(StandinDevice, GivesMemoryToTheLastByteAndNoFurther) {
  Device device = two_clients({.memory_bytes = kGiB});
  EXPECT_TRUE(device.reserve(1, kGiB - 5));
  EXPECT_FALSE(device.reserve(2, 6));
  EXPECT_TRUE(device.reserve(2, 5));
  EXPECT_EQ(device.free_bytes(), 0U);
  EXPECT_TRUE(device.release(1, 3));
  EXPECT_EQ(device.free_bytes(), 3U);
}

TEST(StandinDevice, RefusesToTakeBackMoreThanAClientHolds) {
  Device device = two_clients();
  ASSERT_TRUE(device.reserve(1, 10));
  ASSERT_TRUE(device.reserve(2, 10));
  EXPECT_FALSE(device.release(1, 11));
  EXPECT_TRUE(device.release(1, 10));
}

TEST(StandinDevice, RunsTheKernelsOfAStreamInOrder) {
  Device device = two_clients();
  device.submit({1, 1}, kernel(microseconds(5)));
  device.submit({1, 1}, kernel(microseconds(7)));
  run(device, microseconds(6));
  EXPECT_TRUE(device.is_done({1, 1}, 1));
  EXPECT_FALSE(device.is_done({1, 1}, 2));
  run(device, microseconds(12));
  EXPECT_TRUE(device.is_done({1, 1}, 2));
}

TEST(StandinDevice, RunsKernelsOfTwoStreamsTogetherWhenTheProcessorsSuffice) {
  Device device = two_clients({.processors = 10});
  device.submit({1, 1}, kernel(microseconds(10), 5));
  device.submit({1, 3}, kernel(microseconds(10), 5));
  run(device, microseconds(10));
  EXPECT_TRUE(device.is_done({1, 1}, 1));
  EXPECT_TRUE(device.is_done({1, 3}, 1));
  device.submit({1, 1}, kernel(microseconds(10), 6));
  device.submit({1, 3}, kernel(microseconds(10), 5));
  run(device, microseconds(20));
  EXPECT_TRUE(device.is_done({1, 1}, 2));
  EXPECT_FALSE(device.is_done({1, 3}, 2));
}

TEST(StandinDevice, StartsKernelsOfTheMoreUrgentStreamFirst) {
  Device device = two_clients();
  device.open_stream({1, 8}, 1, StreamKind::kNonBlocking, 0);
  device.open_stream({1, 9}, 1, StreamKind::kNonBlocking, -1);
  for (const std::uint64_t stream : {1U, 8U, 9U})
    device.submit({1, stream}, kernel(microseconds(10)));
  run(device, microseconds(10));
  EXPECT_TRUE(device.is_done({1, 9}, 1));
  EXPECT_FALSE(device.is_done({1, 1}, 1));
  run(device, microseconds(20));
  EXPECT_TRUE(device.is_done({1, 1}, 1));
  EXPECT_FALSE(device.is_done({1, 8}, 1));
}

TEST(StandinDevice, SamplesWhatEachProcessDidPeriodByPeriod) {
  Device device = two_clients({.host_copy_rate = 1e9, .sample_period = milliseconds(10)});
  device.submit({1, 1}, kernel(milliseconds(4)));
  device.submit({2, 1}, {.kind = OpKind::kCopy, .engine = Engine::kToHost, .bytes = 12'000'000});
  device.submit({2, 3},
                {.kind = OpKind::kCopy, .engine = Engine::kEncode, .duration = milliseconds(3)});
  run(device, milliseconds(9));
  EXPECT_TRUE(device.samples(Time{}).empty()) << "the period is not over";
  run(device, milliseconds(20));
  const std::vector<Sample> samples = device.samples(Time{});
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].end, milliseconds(10));
  EXPECT_EQ(samples[0].processes.at(1001).kernels, milliseconds(4));
  EXPECT_EQ(samples[0].processes.at(1002).copies, milliseconds(10));
  EXPECT_EQ(samples[0].processes.at(1002).encoding, milliseconds(3));
  EXPECT_FALSE(samples[1].processes.contains(1001));
  EXPECT_EQ(samples[1].processes.at(1002).copies, milliseconds(2));
  EXPECT_EQ(device.samples(milliseconds(10)).size(), 1U);
}

TEST(StandinDevice, AlternatesBetweenBusyContextsByTheTimeSlice) {
  Device device = two_clients();
  for (const ClientId client : {1U, 2U})
    device.submit({client, 1}, kernel(milliseconds(10)));
  run(device, milliseconds(6));
  ASSERT_EQ(device.log().size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(device.log()[i].pid, 1001 + i % 2);
    EXPECT_EQ(device.log()[i].end - device.log()[i].start, milliseconds(1));
  }
  EXPECT_EQ(device.usage().at(1).busy, device.usage().at(2).busy);
}

TEST(StandinDevice, GivesTheRestOfATurnAwayWhenItsContextRunsDry) {
  Device device = two_clients();
  device.submit({1, 1}, kernel(microseconds(200)));
  device.submit({2, 1}, kernel(microseconds(300)));
  run(device, microseconds(500));
  EXPECT_TRUE(device.is_done({1, 1}, 1));
  EXPECT_TRUE(device.is_done({2, 1}, 1));
  EXPECT_FALSE(device.next_event());
}

TEST(StandinDevice, LetsTheDefaultStreamWaitForBlockingStreamsAndThemForIt) {
  Device device = two_clients();
  device.submit({1, 3}, kernel(microseconds(10), 1));
  device.submit({1, 2}, kernel(microseconds(10), 1));
  device.submit({1, 3}, kernel(microseconds(10), 1));
  device.submit({1, 1}, kernel(microseconds(10), 1));
  run(device, microseconds(10));
  EXPECT_TRUE(device.is_done({1, 1}, 1)) << "a stream that does not block goes its own way";
  EXPECT_FALSE(device.is_done({1, 2}, 1));
  run(device, microseconds(20));
  EXPECT_TRUE(device.is_done({1, 2}, 1));
  EXPECT_FALSE(device.is_done({1, 3}, 2));
  run(device, microseconds(30));
  EXPECT_TRUE(device.is_done({1, 3}, 2));
}

TEST(StandinDevice, WaitsForAnotherStreamWhereItIsTold) {
  Device device = two_clients();
  device.submit({1, 3}, kernel(microseconds(50)));
  device.submit({1, 1}, {.kind = OpKind::kMark, .ticket = 9, .after = {{3, 1}}});
  run(device, microseconds(49));
  EXPECT_FALSE(device.mark_time({1, 9}));
  run(device, microseconds(70));
  EXPECT_EQ(device.mark_time({1, 9}), microseconds(50));
}

TEST(StandinDevice, TimesACopyThenLetsTheClientMoveTheBytes) {
  Device device = two_clients({.host_copy_rate = 1e9});
  device.submit({1, 1},
                {.kind = OpKind::kCopy, .engine = Engine::kToHost, .bytes = 1000, .ticket = 4});
  EXPECT_TRUE(run(device, Time(999)).empty());
  const auto notices = run(device, Time(1000));
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].ticket, 4U);
  EXPECT_FALSE(device.is_done({1, 1}, 1));
  device.answer(1, 4);
  EXPECT_TRUE(device.is_done({1, 1}, 1));
}

TEST(StandinDevice, CopiesOneAfterTheOtherInOneDirectionAndAtOnceInTwo) {
  Device device = two_clients({.host_copy_rate = 1e9});
  const auto copy = [](Engine engine, std::uint64_t ticket) {
    return Op{.kind = OpKind::kCopy, .engine = engine, .bytes = 1000, .ticket = ticket};
  };
  device.submit({1, 1}, copy(Engine::kToHost, 1));
  device.submit({2, 1}, copy(Engine::kToHost, 2));
  device.submit({2, 3}, copy(Engine::kToDevice, 3));
  EXPECT_EQ(run(device, Time(1000)).size(), 2U);
  EXPECT_EQ(run(device, Time(1999)).size(), 0U);
  EXPECT_EQ(run(device, Time(2000)).size(), 1U);
}

TEST(StandinDevice, LogsWhatEachEngineDidForWhomAtItsRate) {
  Device device = two_clients({.host_copy_rate = 2e9});
  device.submit({1, 1}, {.kind = OpKind::kCopy, .engine = Engine::kToHost, .bytes = 6000});
  device.submit({2, 1}, {.kind = OpKind::kCopy, .engine = Engine::kToHost, .bytes = 2000});
  device.submit({2, 3},
                {.kind = OpKind::kCopy, .engine = Engine::kEncode, .duration = microseconds(7)});
  run(device, microseconds(100));
  const std::vector<EngineInterval>& log = device.engine_log();
  ASSERT_EQ(log.size(), 3U);
  const auto of = [&](ClientId client, Engine engine) {
    return *std::ranges::find_if(log, [&](const EngineInterval& interval) {
      return interval.client == client && interval.engine == engine;
    });
  };
  EXPECT_EQ(of(1, Engine::kToHost).bytes, 6000U);
  EXPECT_EQ(of(1, Engine::kToHost).end, microseconds(3));
  EXPECT_EQ(of(2, Engine::kToHost).start, microseconds(3)) << "one after the other";
  EXPECT_EQ(of(2, Engine::kToHost).end, microseconds(4));
  EXPECT_EQ(of(2, Engine::kEncode).end - of(2, Engine::kEncode).start, microseconds(7));
}

TEST(StandinDevice, ForgetsAClientThatIsGoneWithItsMemoryAndQueue) {
  Device device = two_clients({.memory_bytes = kGiB, .host_copy_rate = 1e9});
  ASSERT_TRUE(device.reserve(1, kGiB));
  device.submit({1, 1}, kernel(milliseconds(100)));
  device.submit({1, 3}, {.kind = OpKind::kCopy, .engine = Engine::kToHost, .bytes = 1000000});
  device.submit({2, 1}, kernel(milliseconds(1)));
  device.submit({2, 3},
                {.kind = OpKind::kCopy, .engine = Engine::kToHost, .bytes = 1000, .ticket = 7});
  run(device, microseconds(100));
  device.remove_client(1);
  EXPECT_EQ(device.free_bytes(), kGiB);
  const auto notices = run(device, microseconds(1100));
  EXPECT_TRUE(device.is_done({2, 1}, 1));
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].ticket, 7U);
  EXPECT_FALSE(device.next_event());
}

TEST(StandinDevice, RefusesWorkForAStreamThatIsNotThere) {
  Device device = two_clients();
  EXPECT_FALSE(device.submit({1, 99}, kernel(Time(1))));
  device.close_context({1, 1});
  EXPECT_FALSE(device.submit({1, 1}, kernel(Time(1))));
}

}  // namespace
}  // namespace regatta::standin
