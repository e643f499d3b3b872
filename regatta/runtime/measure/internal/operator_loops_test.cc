#include "regatta/runtime/measure/internal/operator_loops.h"

#include <gtest/gtest.h>

#include "regatta/runtime/measure/measurement_schedule.h"
#include "regatta/runtime/measure/test_clusters.h"

namespace regatta::measure {
namespace {

device::ComputeDevice free_cpu() {
  return *device::open_device({.kind = topo::DeviceKind::kCpu, .index = 0, .compute_cgroup = ""});
}

TEST(RunTask, RunsEveryTaskOfTheSchedule) {
  const device::ComputeDevice device = free_cpu();
  for (DeviceTask task : make_measurement_schedule(two_devices(), {.quick = true}).device_tasks) {
    if (task.m > 256 || task.n > 256 || task.k > 256) continue;  // the others differ in size alone
    const auto sample = run_task(task, device, {.time = {0}});
    ASSERT_TRUE(sample.has_value()) << sample.error().message;
    EXPECT_EQ(sample->work, work_of_round(task)) << to_string(task);
    EXPECT_GT(sample->busy.value, 0) << to_string(task);
  }
}

TEST(RunTask, LastsAsLongAsItIsTold) {
  const DeviceTask task{.kind = TaskKind::kProduct, .m = 32, .n = 32, .k = 32};
  const auto sample = run_task(task, free_cpu(), {.time = {0.05}});
  ASSERT_TRUE(sample.has_value());
  EXPECT_GT(sample->work, 10 * work_of_round(task));
  EXPECT_LE(sample->busy.value, 5);
}

TEST(RunTask, RefusesWhatTheTensorsRefuse) {
  const DeviceTask task{.kind = TaskKind::kProduct, .m = -4, .n = 8, .k = 8};
  const auto sample = run_task(task, free_cpu(), {.time = {0}});
  ASSERT_FALSE(sample.has_value());
  EXPECT_EQ(sample.error().code, Code::kUnsupported);
}

}  // namespace
}  // namespace regatta::measure
