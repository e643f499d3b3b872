#include "regatta/network/link_rates/internal/train.h"

#include <gtest/gtest.h>

namespace regatta::link_rates {
namespace {

// Arrivals behind a token bucket of `burst` bytes and `rate`, of packets that come at once.
std::vector<TrainArrival> behind(const TrainShape& shape, double rate, double burst) {
  std::vector<TrainArrival> arrivals;
  double bytes = 0;
  for (int i = 0; i < shape.packets; ++i) {
    bytes += bytes_of(shape, i) + kFrameOverheadBytes;
    if (shape.time_to_live > 0 && !is_marker(shape, i)) continue;
    const double at = std::max(0.0, (bytes - burst) / rate);
    arrivals.push_back({i, static_cast<std::int64_t>(at * 1e9)});
  }
  return arrivals;
}

TEST(TrainHeader, IsReadAsWritten) {
  const auto bytes = encode({.train = 0x0123456789abcdef, .index = 77});
  const auto header = decode_train_header(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->train, 0x0123456789abcdefU);
  EXPECT_EQ(header->index, 77U);
  EXPECT_FALSE(decode_train_header(std::span(bytes).first(19)));
  auto other = bytes;
  other[0] = std::byte{0};
  EXPECT_FALSE(decode_train_header(other));
}

TEST(TrainShape, TakesFiveMillisecondsOfItsLink) {
  for (const int time_to_live : {0, 2})
    for (const double rate : {1.25e7, 2.5e7, 1.25e8}) {
      const TrainShape shape = shape_for({rate}, time_to_live);
      EXPECT_NEAR(static_cast<double>(frame_bytes(shape).value) / rate, 5e-3, 1e-3);
      EXPECT_LE(shape.packets, kTrainPacketsMost);
    }
  EXPECT_LE(shape_for({1e13}, 2).packets, kTrainPacketsMost);
  EXPECT_GE(shape_for({1}, 0).packets, 32);
}

TEST(TrainShape, CountsTheAnswersOfTheRouterWhereItsLoadEnds) {
  EXPECT_EQ(answer_bytes({.packets = 8, .packet_bytes = 1000, .time_to_live = 0}).value, 0);
  EXPECT_EQ(answer_bytes({.packets = 8, .packet_bytes = 1000, .time_to_live = 2}).value, 6 * 590);
}

TEST(ArrivalRate, IsThatOfTheBucketBehindItsBurst) {
  for (const int time_to_live : {0, 2})
    for (const double rate : {1e6, 1.25e7, 2.5e7}) {
      const TrainShape shape = shape_for({rate}, time_to_live);
      const auto measured = arrival_rate(shape, behind(shape, rate, 10e3));
      ASSERT_TRUE(measured);
      EXPECT_NEAR(measured->value, rate, 1e-3 * rate);
    }
}

TEST(ArrivalRate, CountsOnlyPacketsThatArrivedWhereAllShould) {
  const TrainShape shape = shape_for({1.25e7}, 0);
  auto arrivals = behind(shape, 1.25e7, 0);
  // Every third one was dropped before the narrow link, which then sent the next one sooner.
  std::vector<TrainArrival> left;
  double bytes = 0;
  for (const TrainArrival& one : arrivals) {
    if (one.index % 3 == 0) continue;
    bytes += bytes_of(shape, one.index) + kFrameOverheadBytes;
    left.push_back({one.index, static_cast<std::int64_t>(bytes / 1.25e7 * 1e9)});
  }
  const auto measured = arrival_rate(shape, left);
  ASSERT_TRUE(measured);
  EXPECT_NEAR(measured->value, 1.25e7, 1e5);
}

TEST(ArrivalRate, IsLittleChangedByOneLateArrival) {
  const TrainShape shape = shape_for({1.25e7}, 0);
  auto arrivals = behind(shape, 1.25e7, 0);
  arrivals[30].at_ns += 200'000;
  EXPECT_NEAR(arrival_rate(shape, arrivals)->value, 1.25e7, 0.06 * 1.25e7);
}

TEST(ArrivalRate, IsNothingWithoutEnoughOrderedArrivals) {
  const TrainShape shape = shape_for({1.25e7}, 0);
  EXPECT_FALSE(arrival_rate(shape, {}));
  EXPECT_FALSE(arrival_rate(shape, {{40, 0}, {39, 5}, {38, 7}}));
  std::vector<TrainArrival> at_once;
  for (int i = 0; i < shape.packets; ++i)
    at_once.push_back({i, 5});
  EXPECT_FALSE(arrival_rate(shape, at_once));
  // Indices that no packet of the train has, and copies.
  EXPECT_FALSE(arrival_rate(shape, {{-1, 0}, {100000, 1}, {40, 2}, {40, 3}, {40, 4}, {40, 5}}));
}

}  // namespace
}  // namespace regatta::link_rates
