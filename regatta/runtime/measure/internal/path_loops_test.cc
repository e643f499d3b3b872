#include "regatta/runtime/measure/internal/path_loops.h"

#include <gtest/gtest.h>

#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::measure {
namespace {

MeasurementSchedule short_schedule() {
  MeasurementSchedule schedule;
  schedule.round_trips = 20;
  schedule.transfers = 3;
  schedule.transfer_time = Seconds{0.001};
  schedule.transfer_size_min = Bytes{64 << 10};
  schedule.transfer_size_max = Bytes{1 << 20};
  return schedule;
}

class RunPath : public testing::TestWithParam<comm::TestLayout> {};

TEST_P(RunPath, FindsLatencyAndBandwidthAndLeavesTheOthersAlone) {
  const MeasurementSchedule schedule = short_schedule();
  const PathTask task{cost::PathClass::kSameLeaf, Rank{0}, Rank{2}};
  comm::run_all(GetParam(), 3, [&](comm::Communicator& world) {
    if (world.rank() != task.from && world.rank() != task.to) return;
    const auto sample = run_path(world, task, schedule);
    ASSERT_TRUE(sample.has_value()) << sample.error().message;
    if (world.rank() != task.from) return;
    EXPECT_GT(sample->latency.value, 0);
    EXPECT_LT(sample->latency.value, 1);
    EXPECT_GT(sample->bandwidth.value, 1e6);
    EXPECT_LT(sample->bandwidth.value, 1e12);
  });
}

INSTANTIATE_TEST_SUITE_P(Layouts, RunPath,
                         testing::Values(comm::TestLayout::kShm, comm::TestLayout::kTcp));

}  // namespace
}  // namespace regatta::measure
