#include "regatta/runtime/measure/measurement_schedule.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/runtime/measure/measurement_schedule_json.h"
#include "regatta/runtime/measure/test_clusters.h"

namespace regatta::measure {
namespace {

TEST(MakeMeasurementSchedule, MeasuresNoShapeTwice) {
  const MeasurementSchedule schedule = make_measurement_schedule(two_leaves(), {});
  std::set<std::tuple<workload::Precision, int, int, int>> seen;
  for (const DeviceTask& task : schedule.device_tasks) {
    if (task.kind != TaskKind::kProduct && task.kind != TaskKind::kBatched) continue;
    EXPECT_TRUE(seen.emplace(task.precision, task.m, task.n, task.k).second) << to_string(task);
  }
  EXPECT_GT(seen.size(), 100U);
}

TEST(MakeMeasurementSchedule, CoversBothPrecisionsAndEveryOperator) {
  for (const bool quick : {false, true}) {
    const MeasurementSchedule schedule = make_measurement_schedule(two_devices(), {.quick = quick});
    for (const auto precision : {workload::Precision::kFp32, workload::Precision::kBf16}) {
      EXPECT_TRUE(std::any_of(
          schedule.device_tasks.begin(), schedule.device_tasks.end(), [&](const DeviceTask& task) {
            return task.kind == TaskKind::kProduct && task.precision == precision;
          }));
    }
    std::set<cost::PointwiseOp> operators;
    for (const DeviceTask& task : schedule.device_tasks) {
      if (task.kind == TaskKind::kPointwise) operators.insert(task.op);
    }
    EXPECT_EQ(operators.size(), std::size(cost::kPointwiseOps));
  }
}

TEST(MakeMeasurementSchedule, TakesSeveralPairsOfEachPathClassOnDistinctServers) {
  const MeasurementSchedule schedule = make_measurement_schedule(two_leaves(), {});
  std::map<cost::PathClass, int> pairs;
  std::set<std::pair<Rank, Rank>> seen;
  for (const PathTask& task : schedule.path_tasks) {
    EXPECT_NE(task.from, task.to);
    EXPECT_TRUE(seen.emplace(task.from, task.to).second);
    ++pairs[task.path];
  }
  EXPECT_EQ(pairs[cost::PathClass::kSameLeaf], 4);
  EXPECT_EQ(pairs[cost::PathClass::kSameGroup], 8);
  EXPECT_EQ(pairs.count(cost::PathClass::kSameServer), 0U);
}

TEST(MakeMeasurementSchedule, IsShorterWhenQuick) {
  const MeasurementSchedule full = make_measurement_schedule(two_leaves(), {});
  const MeasurementSchedule quick = make_measurement_schedule(two_leaves(), {.quick = true});
  EXPECT_LT(2 * quick.device_tasks.size(), full.device_tasks.size());
  EXPECT_EQ(quick.path_tasks.size(), 2U);
}

TEST(WorkOfRound, CountsTheProductsOfEveryLayout) {
  const DeviceTask product{.kind = TaskKind::kProduct, .m = 10, .n = 20, .k = 30};
  EXPECT_EQ(work_of_round(product), 3 * 2.0 * 10 * 20 * 30);
  const DeviceTask scores{.kind = TaskKind::kBatched, .m = 8, .n = 8, .k = 2, .batch = 4};
  EXPECT_EQ(work_of_round(scores), 2.0 * 4 * 8 * 8 * 2);
  const DeviceTask context{.kind = TaskKind::kBatched, .m = 8, .n = 2, .k = 8, .batch = 4};
  EXPECT_EQ(work_of_round(context), 2 * 2.0 * 4 * 8 * 8 * 2);
  const DeviceTask copy{.kind = TaskKind::kCopy, .m = 10, .n = 10};
  EXPECT_EQ(work_of_round(copy), 800);
}

TEST(MeasurementScheduleJson, GivesBackWhatWasWritten) {
  const MeasurementSchedule schedule = make_measurement_schedule(two_leaves(), {.quick = true});
  const nlohmann::json written = to_json(schedule);
  const JsonReader reader(written, "spec");
  const MeasurementSchedule back = read_measurement_schedule(reader);
  ASSERT_TRUE(reader.status()) << reader.status().error().message;
  EXPECT_EQ(to_json(back), written);
  EXPECT_EQ(back.device_tasks.size(), schedule.device_tasks.size());
  EXPECT_EQ(back.transfer_size_max, schedule.transfer_size_max);
}

TEST(MeasurementScheduleJson, NamesTheKeyThatIsWrong) {
  const nlohmann::json written = to_json(make_measurement_schedule(two_devices(), {.quick = true}));
  const auto error_of = [](const nlohmann::json& spec) {
    const JsonReader reader(spec, "spec");
    static_cast<void>(read_measurement_schedule(reader));
    return reader.status() ? "none" : reader.status().error().message;
  };
  nlohmann::json spec = written;
  spec.erase("round_trips");
  EXPECT_EQ(error_of(spec), "spec: round_trips: missing");
  spec = written;
  spec["device_tasks"][0]["kind"] = 99;
  EXPECT_EQ(error_of(spec),
            "spec: device_tasks[0].kind: expected one of product, batched, pointwise, copy, "
            "overhead, found 99");
}

TEST(MeasurementScheduleJson, ReadsTheEventsThatWorkersSend) {
  const Sample device = parse_event(Rank{3}, to_event(DeviceSample{Rank{}, 7, 1e9, {0.01}}));
  ASSERT_TRUE(std::holds_alternative<DeviceSample>(device));
  EXPECT_EQ(std::get<DeviceSample>(device).rank, Rank{3});
  EXPECT_EQ(std::get<DeviceSample>(device).busy.value, 0.01);
  const Sample share = parse_event(Rank{1}, to_event(ShareSample{Rank{}, {1.5}, {10}}));
  ASSERT_TRUE(std::holds_alternative<ShareSample>(share));
  EXPECT_EQ(std::get<ShareSample>(share).wall.value, 10);
  const Sample path = parse_event(Rank{0}, to_event(PathSample{2, {1e-5}, {1e7}}));
  ASSERT_TRUE(std::holds_alternative<PathSample>(path));
  EXPECT_EQ(std::get<PathSample>(path).bandwidth.value, 1e7);
  EXPECT_EQ(parse_event(Rank{0}, {{"event", "done"}}).index(), 0U);
  EXPECT_EQ(parse_event(Rank{0}, {{"event", "sample"}, {"task", "x"}}).index(), 0U);
  EXPECT_EQ(parse_event(Rank{0}, nlohmann::json::array()).index(), 0U);
}

}  // namespace
}  // namespace regatta::measure
