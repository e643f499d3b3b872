#include "regatta/platform/node_agent/internal/replica_meter.h"

#include <csignal>

#include <gmock/gmock.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::node_agent {
namespace {

using node_protocol::kUnknownPercent;
using node_protocol::ReadingSource;
using testing::ElementsAre;

class CgroupFiles : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(os::make_folder(folder_)); }
  void TearDown() override { ASSERT_TRUE(os::remove_tree(folder_)); }
  void write(double processor_s, double memory) {
    ASSERT_TRUE(os::write_file(folder_ + "/cpu.stat",
                               "usage_usec " +
                                   std::to_string(static_cast<long long>(processor_s * 1e6)) +
                                   "\nuser_usec 1\n"));
    ASSERT_TRUE(os::write_file(folder_ + "/memory.current",
                               std::to_string(static_cast<long long>(memory)) + "\n"));
  }
  MeasuredReplica replica(std::uint32_t devices) const {
    return {.key = {.job = 1, .attempt = 1, .replica = 0}, .devices = devices, .cgroup = folder_};
  }
  std::string folder_ = testing::TempDir() + "replica_meter";
};

TEST_F(CgroupFiles, GiveUseAndMemoryAsPartsOfTheDevicesShare) {
  // Two of four devices: two of four processors, 500 of 1000 bytes.
  ReplicaMeter meter(4, 1000, 4);
  write(5, 125);
  const auto first = meter.read(std::vector{replica(0b0101)}, 10);
  EXPECT_EQ(first.source, ReadingSource::kCgroups);
  EXPECT_THAT(first.use, ElementsAre(kUnknownPercent, 0, kUnknownPercent, 0));
  write(6, 125);
  const auto second = meter.read(std::vector{replica(0b0101)}, 11);
  EXPECT_THAT(second.use, ElementsAre(50, 0, 50, 0));
  EXPECT_THAT(second.memory, ElementsAre(25, 0, 25, 0));
  write(16, 125);
  EXPECT_THAT(meter.read(std::vector{replica(0b0101)}, 12).use, ElementsAre(100, 0, 100, 0));
  EXPECT_THAT(meter.read({}, 13).use, ElementsAre(0, 0, 0, 0));
}

TEST(ReplicaMeter, MeasuresTheProcessesBelowASupervisorWithoutACgroup) {
  const auto pid = os::spawn(
      {"sh", "-c", "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 60) & wait"}, {});
  ASSERT_TRUE(pid);
  const MeasuredReplica replica{
      .key = {.job = 1, .attempt = 1, .replica = 0}, .devices = 1, .supervisor = *pid};
  ReplicaUse use;
  for (int round = 0; round < 500 && use.processor_s < 0.03; ++round) {
    os::sleep_for(Seconds{0.01});
    use = measure_replica(replica);
  }
  EXPECT_EQ(use.source, ReadingSource::kProcesses);
  EXPECT_GE(use.processor_s, 0.03);
  EXPECT_GT(use.memory_bytes, 100e3);
  for (const os::ProcessEntry& entry : os::list_processes())
    if (entry.parent == *pid) ::kill(entry.pid, SIGKILL);
  ::kill(*pid, SIGKILL);
  EXPECT_TRUE(os::wait_for(*pid));
}

}  // namespace
}  // namespace regatta::node_agent
