#include "regatta/runtime/measure/summarize.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/measure/test_clusters.h"

namespace regatta::measure {
namespace {

using testing::HasSubstr;

// A measurement of two ranks: one product, one pass, a copy and a launch each, and one path.
MeasurementSchedule small_schedule() {
  MeasurementSchedule schedule;
  const auto fp32 = workload::Precision::kFp32;
  schedule.device_tasks = {
      {.kind = TaskKind::kProduct, .precision = fp32, .m = 64, .n = 128, .k = 256},
      {.kind = TaskKind::kPointwise,
       .precision = fp32,
       .m = 64,
       .n = 64,
       .op = cost::PointwiseOp::kGelu},
      {.kind = TaskKind::kCopy, .precision = fp32, .m = 1024, .n = 1024},
      {.kind = TaskKind::kOverhead, .precision = fp32, .m = 1, .n = 8}};
  schedule.path_tasks = {{cost::PathClass::kSameServer, Rank{0}, Rank{1}}};
  return schedule;
}

// Every device works 15 % of the time, at `speed` units of work per second of busy time.
Samples samples_of(const MeasurementSchedule& schedule, int world_size, double speed) {
  Samples samples;
  for (int rank = 0; rank < world_size; ++rank) {
    for (int task = 0; task < static_cast<int>(schedule.device_tasks.size()); ++task)
      samples.devices.push_back({Rank{rank}, task, 0.012 * speed, {0.012}});
    samples.shares.push_back({Rank{rank}, {1.5}, {10}});
  }
  for (int task = 0; task < static_cast<int>(schedule.path_tasks.size()); ++task)
    samples.paths.push_back({task, {1e-4}, {2e7}});
  return samples;
}

TEST(DeviceSampleCount, CountsEveryLoopOfEveryPassOnEveryRank) {
  MeasurementSchedule schedule;
  schedule.device_tasks.resize(7);
  schedule.passes = 3;
  EXPECT_EQ(device_sample_count(schedule, 4), 84);
}

TEST(HarmonicMean, IsTheRateOfTheMeanTime) {
  EXPECT_DOUBLE_EQ(harmonic_mean({5}), 5);
  EXPECT_DOUBLE_EQ(harmonic_mean({1, 3}), 1.5);
  EXPECT_DOUBLE_EQ(harmonic_mean({200, 100, 100}), 120);
}

TEST(Summarize, TakesTheShareOverAllLoopsTogether) {
  const MeasurementSchedule schedule = small_schedule();
  Samples samples = samples_of(schedule, 2, 1e9);
  for (ShareSample& share : samples.shares)
    share.wall = {6};
  const auto rates = summarize(two_devices(), schedule, samples);
  ASSERT_TRUE(rates.has_value()) << rates.error().message;
  EXPECT_DOUBLE_EQ(rates->devices.at("cpu").matmul.at(0).rate.value, 0.25e9);
}

TEST(Summarize, PutsEverySampleWhereItBelongs) {
  const MeasurementSchedule schedule = small_schedule();
  const auto rates = summarize(two_devices(), schedule, samples_of(schedule, 2, 1e9));
  ASSERT_TRUE(rates.has_value()) << rates.error().message;
  const cost::DeviceRates& device = rates->devices.at("cpu");
  ASSERT_EQ(device.matmul.size(), 1U);
  EXPECT_EQ(device.matmul[0].n, 128);
  ASSERT_EQ(device.pointwise.size(), 1U);
  EXPECT_EQ(device.pointwise[0].op, cost::PointwiseOp::kGelu);
  EXPECT_DOUBLE_EQ(device.pointwise[0].bandwidth.value, 0.15e9);
  EXPECT_DOUBLE_EQ(device.pointwise_bandwidth.value, 0.15e9);
  EXPECT_DOUBLE_EQ(device.copy_bandwidth.value, 0.15e9);
  EXPECT_DOUBLE_EQ(device.operator_overhead.value, 1 / 0.15e9);
  ASSERT_EQ(rates->paths.size(), 1U);
  EXPECT_EQ(rates->paths[0].latency.value, 1e-4);
  EXPECT_EQ(rates->paths[0].bandwidth.value, 2e7);
  EXPECT_EQ(rates->paths[0].described.value, 1e9);
}

TEST(Summarize, TakesTheMeanTimeOverTheDevices) {
  const topo::Cluster cluster = two_leaves();
  const MeasurementSchedule schedule = make_measurement_schedule(cluster, {.quick = true});
  Samples samples = samples_of(schedule, 4, 1e9);
  for (DeviceSample& sample : samples.devices) {
    if (sample.rank == Rank{2}) sample.work *= 0.2;  // one slow device
  }
  const auto rates = summarize(cluster, schedule, samples);
  ASSERT_TRUE(rates.has_value()) << rates.error().message;
  for (const cost::MatmulRate& rate : rates->devices.at("cpu").matmul)
    EXPECT_DOUBLE_EQ(rate.rate.value, 0.15e9 * 4 / (3 + 1 / 0.2));
}

TEST(Summarize, TakesTheMeanTimeOverThePasses) {
  const MeasurementSchedule schedule = small_schedule();
  Samples samples = samples_of(schedule, 2, 1e9);
  for (const double speed : {0.8e9, 0.4e9}) {  // the third pass was disturbed
    const Samples pass = samples_of(schedule, 2, speed);
    samples.devices.insert(samples.devices.end(), pass.devices.begin(), pass.devices.end());
  }
  const auto rates = summarize(two_devices(), schedule, samples);
  ASSERT_TRUE(rates.has_value()) << rates.error().message;
  EXPECT_DOUBLE_EQ(rates->devices.at("cpu").matmul.at(0).rate.value,
                   0.15e9 * 3 / (1 + 1 / 0.8 + 1 / 0.4));
  EXPECT_NEAR(pass_variation(samples), 0.75, 1e-9);
}

TEST(PassVariation, IsNothingForOnePass) {
  EXPECT_EQ(pass_variation(samples_of(small_schedule(), 2, 1e9)), 0);
  EXPECT_EQ(pass_variation({}), 0);
}

TEST(Summarize, NamesWhatWasNotReported) {
  const MeasurementSchedule schedule = small_schedule();
  Samples samples = samples_of(schedule, 2, 1e9);
  samples.paths.clear();
  auto rates = summarize(two_devices(), schedule, samples);
  ASSERT_FALSE(rates.has_value());
  EXPECT_THAT(rates.error().message, HasSubstr("path same_server: no pair of devices reported"));

  samples = samples_of(schedule, 2, 1e9);
  std::erase_if(samples.devices, [](const DeviceSample& sample) { return sample.task == 0; });
  rates = summarize(two_devices(), schedule, samples);
  ASSERT_FALSE(rates.has_value());
  EXPECT_EQ(rates.error().message,
            "device type cpu: no device reported \"product 64 x 128 x 256 fp32\"; run again");
}

TEST(Summarize, IgnoresSamplesOfOtherSchedules) {
  const MeasurementSchedule schedule = small_schedule();
  Samples samples = samples_of(schedule, 2, 1e9);
  samples.devices.push_back({Rank{7}, 0, 1, {1}});
  samples.devices.push_back({Rank{0}, -1, 1, {0.001}});
  samples.shares.push_back({Rank{7}, {1}, {1}});
  samples.paths.push_back({12, {1}, {1}});
  EXPECT_TRUE(summarize(two_devices(), schedule, samples).has_value());
}

}  // namespace
}  // namespace regatta::measure
