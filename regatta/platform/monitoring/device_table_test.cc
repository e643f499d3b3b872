#include "regatta/platform/monitoring/device_table.h"

#include <gmock/gmock.h>

namespace regatta::monitoring {
namespace {

using node_protocol::DeviceReadings;
using node_protocol::ReadingSource;
using testing::ElementsAre;
using testing::IsEmpty;

control::ClusterTables tables_of(const std::vector<int>& devices) {
  control::ClusterTables tables;
  for (const int count : devices) {
    control::ManagedNode& node = tables.nodes.emplace_back();
    node.facts.name = "n" + std::to_string(tables.nodes.size());
    node.facts.devices = count;
    node.is_connected = true;
  }
  return tables;
}

void place_job(control::ClusterTables& tables, control::JobId id, int node, std::uint32_t devices) {
  control::ManagedJob& job = tables.jobs[id];
  job.id = id;
  job.attempt = std::make_unique<control::Attempt>();
  job.attempt->replicas.push_back(
      {.node = node, .devices = devices, .phase = control::ReplicaPhase::kRunning});
  tables.nodes[static_cast<std::size_t>(node)].replicas.push_back({id, 0});
}

DeviceReadings readings(std::uint32_t devices, std::vector<std::uint8_t> use) {
  DeviceReadings now{.source = ReadingSource::kNvml, .devices = devices};
  now.memory.assign(use.size(), 50);
  now.use = std::move(use);
  return now;
}

TEST(DeviceTable, TakesChangesOfSomeDevicesOfANode) {
  DeviceTable table("e");
  table.update_layout(tables_of({2, 4}));
  table.take(1, readings(0b1111, {1, 2, 3, 4}));
  table.take(1, readings(0b1010, {20, 40}));
  EXPECT_THAT(table.use(), ElementsAre(255, 255, 1, 20, 3, 40));
  table.take(0, readings(0b100, {9}));  // it has no such device
  EXPECT_THAT(table.use(), ElementsAre(255, 255, 1, 20, 3, 40));
  table.forget(1);
  EXPECT_THAT(table.use(), ElementsAre(255, 255, 255, 255, 255, 255));
}

TEST(DeviceTable, SaysWhoHasADeviceAndWhetherItWorks) {
  control::ClusterTables tables = tables_of({2, 2});
  place_job(tables, 7, 1, 0b10);
  tables.nodes[0].intent = control::NodeIntent::kCordoned;
  tables.nodes[1].facts.failed_devices = 0b01;
  DeviceTable table("e");
  table.update_layout(tables);
  EXPECT_THAT(table.state(),
              ElementsAre(kDeviceCordoned, kDeviceCordoned, kDeviceFailed, kDeviceHasJob));
  EXPECT_THAT(table.jobs(), ElementsAre(0, 0, 0, 7));
  tables.nodes[1].is_connected = false;
  table.update_node(tables, 1);
  EXPECT_THAT(table.state(),
              ElementsAre(kDeviceCordoned, kDeviceCordoned, kDeviceFailed | kDeviceSilent,
                          kDeviceHasJob | kDeviceSilent));
}

TEST(DeviceTable, GivesEachReaderTheChangesSinceItsCursor) {
  control::ClusterTables tables = tables_of({16});
  DeviceTable table("e");
  table.update_layout(tables);
  const std::string first = table.cursor();
  EXPECT_THAT(table.changes_since(first).use, IsEmpty());
  table.take(0, readings(0b1, {1}));
  const DeviceChanges second = table.changes_since(first);
  EXPECT_FALSE(second.is_reset);
  EXPECT_THAT(second.use, ElementsAre(0, 1));
  table.take(0, readings(0b1000'0000'0000'0110, {5, 6, 7}));
  place_job(tables, 7, 0, 0b1);
  table.update_node(tables, 0);
  EXPECT_THAT(table.changes_since(second.cursor).use, ElementsAre(1, 2, 15, 1));
  EXPECT_THAT(table.changes_since(second.cursor).state, ElementsAre(0, 1));
  EXPECT_THAT(table.changes_since(first).use, ElementsAre(0, 3, 15, 1));
}

TEST(DeviceTable, ResetsReadersOfAnotherLayoutOrProcess) {
  DeviceTable table("e");
  table.update_layout(tables_of({2}));
  const std::string cursor = table.cursor();
  EXPECT_FALSE(table.changes_since(cursor).is_reset);
  table.update_layout(tables_of({2, 2}));
  EXPECT_TRUE(table.changes_since(cursor).is_reset);
  EXPECT_TRUE(table.changes_since("f.1.0").is_reset);
  EXPECT_TRUE(table.changes_since("").is_reset);
  EXPECT_TRUE(table.changes_since("e.2.").is_reset);
}

TEST(DeviceTable, KeepsTheMeansOfAnHourThroughAChangeOfLayout) {
  DeviceTable table("e");
  table.update_layout(tables_of({1, 1}));
  for (int step = 0; step < 400; ++step) {
    for (int second = 0; second < 10; ++second) {
      table.take(1, readings(1, {static_cast<std::uint8_t>(second < 5 ? 10 : 30)}));
      table.end_second([](const JobSecond&) {});
    }
    table.end_step(step * 10'000);
  }
  EXPECT_EQ(table.use_history(1).size(), kStepsKept);
  EXPECT_EQ(table.use_history(1).back(), 20);
  EXPECT_EQ(table.memory_history(1).back(), 50);
  EXPECT_EQ(table.use_history(0).back(), 255);
  EXPECT_EQ(table.history_end_ms(), 399 * 10'000);
  table.update_layout(tables_of({3, 1}));
  EXPECT_EQ(table.use_history(3).back(), 20);
  EXPECT_EQ(table.use_history(1).back(), 255);
}

TEST(DeviceTable, SumsWhatEachJobDoesInASecond) {
  control::ClusterTables tables = tables_of({4});
  place_job(tables, 7, 0, 0b0011);
  place_job(tables, 8, 0, 0b1000);
  DeviceTable table("e");
  table.update_layout(tables);
  table.take(0, readings(0b1101, {50, 9, 20}));
  std::vector<JobSecond> seconds;
  table.end_second([&](const JobSecond& second) { seconds.push_back(second); });
  ASSERT_EQ(seconds.size(), 2U);
  EXPECT_EQ(seconds[0].job, 7);
  EXPECT_EQ(seconds[0].measured, 1) << "the second device tells nothing";
  EXPECT_DOUBLE_EQ(seconds[0].used, 0.5);
  EXPECT_DOUBLE_EQ(seconds[1].used, 0.2);
}

}  // namespace
}  // namespace regatta::monitoring
