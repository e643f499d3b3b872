#include "regatta/gpu/device/discover.h"

#include <cstddef>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/os/file.h"

namespace regatta::device {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// A folder that stands for /sys and says how fast ib0 and ib1 are; eth0 does not tell.
Result<os::TempFolder> make_sys_root() {
  REGATTA_TRY(folder, os::TempFolder::create("discover"));
  for (const char* name : {"ib0", "ib1"}) {
    const std::string nic = folder.path() + "/class/net/" + name;
    REGATTA_TRY_DO(os::make_folder(nic));
    REGATTA_TRY_DO(os::write_file(nic + "/speed", "200000\n"));
  }
  return folder;
}

TEST(DiscoverServer, ReadsARecordedMachine) {
  const auto sys_root = make_sys_root();
  ASSERT_TRUE(sys_root.has_value()) << sys_root.error().message;
  const auto server =
      discover_server({.xml_file = std::string(REGATTA_TESTDATA) + "/two_sockets_a100.xml",
                       .sys_root = sys_root->path()});
  ASSERT_TRUE(server.has_value()) << server.error().message;
  EXPECT_EQ(server->packages, 2);
  EXPECT_EQ(server->cores, 4);
  EXPECT_EQ(server->type.numa_nodes, 2);
  EXPECT_EQ(server->memory.value, 128LL << 30);
  EXPECT_EQ(server->cpu_model, "Example CPU");
  EXPECT_EQ(server->type.device.name, "a100-sxm4-80g");
  EXPECT_EQ(server->type.device_count, 4);
  EXPECT_EQ(server->type.nic_count, 3);
  EXPECT_DOUBLE_EQ(server->type.nic_rate.value, 25e9);
  ASSERT_THAT(server->parts, SizeIs(7));
  EXPECT_EQ(server->parts[2].numa, 1);
  EXPECT_THAT(server->notes, Contains(HasSubstr("the speed of eth0 is not known")));
}

TEST(DiscoverServer, KnowsWhichNicSitsBesideWhichDevice) {
  const auto server = discover_server(
      {.xml_file = std::string(REGATTA_TESTDATA) + "/two_sockets_a100.xml", .sys_root = "/none"});
  ASSERT_TRUE(server.has_value()) << server.error().message;
  const topo::ServerMatrix matrix = topo::matrix_of(server->parts, server->type.intra);
  // dev0 dev1 dev2 dev3 ib0 ib1 eth0
  const auto kind = [&](std::size_t i, std::size_t j) { return matrix.paths[i][j].kind; };
  EXPECT_EQ(kind(0, 1), topo::PathKind::kNvlink);
  EXPECT_EQ(kind(0, 4), topo::PathKind::kPix);
  EXPECT_EQ(kind(1, 4), topo::PathKind::kPix);
  EXPECT_EQ(kind(0, 5), topo::PathKind::kSys);
  EXPECT_EQ(kind(2, 5), topo::PathKind::kPix);
  EXPECT_EQ(kind(2, 6), topo::PathKind::kPhb);
  EXPECT_EQ(kind(5, 6), topo::PathKind::kPhb);
}

TEST(DiscoverServer, ReadsThisMachine) {
  const auto server = discover_server({});
  ASSERT_TRUE(server.has_value()) << server.error().message;
  EXPECT_GE(server->cores, 1);
  EXPECT_GE(server->threads, server->cores);
  EXPECT_GT(server->memory.value, 0);
  EXPECT_GE(server->type.device_count, 1);
  EXPECT_EQ(server->parts.size(),
            static_cast<std::size_t>(server->type.device_count + server->type.nic_count));
}

TEST(DiscoverServer, RefusesAFileThatIsNoRecording) {
  const auto server = discover_server({.xml_file = "/nonexistent.xml", .sys_root = "/sys"});
  ASSERT_FALSE(server.has_value());
  EXPECT_EQ(server.error().code, Code::kInvalidInput);
}

}  // namespace
}  // namespace regatta::device
