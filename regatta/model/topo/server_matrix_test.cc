#include "regatta/model/topo/server_matrix.h"

#include <cstddef>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/presets.h"

namespace regatta::topo {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

ServerComponent part(const char* name, int numa, std::vector<std::string> bridges) {
  return {.name = name, .is_nic = false, .numa = numa, .bridges = std::move(bridges), .rate = {}};
}

TEST(ServerMatrix, ClassifiesPciePathsByTheirNearestMeeting) {
  const IntraLink pcie{IntraKind::kPcie, {32e9}, {}};
  const ServerMatrix matrix = matrix_of(
      {part("a", 0, {"root0", "up0", "down0"}), part("b", 0, {"root0", "up0", "down1"}),
       part("c", 0, {"root0", "up0", "down1", "up5", "down5"}),
       part("d", 0, {"root0", "up1", "down2"}), part("e", 0, {"root1"}), part("f", 1, {"root2"})},
      pcie);
  const auto kind = [&](std::size_t i, std::size_t j) { return matrix.paths[i][j].kind; };
  EXPECT_EQ(kind(0, 0), PathKind::kSelf);
  EXPECT_EQ(kind(0, 1), PathKind::kPix);
  EXPECT_EQ(kind(0, 2), PathKind::kPxb);
  EXPECT_EQ(kind(0, 3), PathKind::kPhb);
  EXPECT_EQ(kind(0, 4), PathKind::kNode);
  EXPECT_EQ(kind(0, 5), PathKind::kSys);
  for (std::size_t i = 0; i < matrix.parts.size(); ++i) {
    for (std::size_t j = 0; j < matrix.parts.size(); ++j)
      EXPECT_EQ(kind(i, j), kind(j, i));
  }
}

TEST(ServerMatrix, ShowsNvlinkBetweenDevicesAndPcieToNics) {
  const ServerType* type = find_server_preset("dgx-a100-80g");
  ASSERT_NE(type, nullptr);
  const ServerMatrix matrix = server_matrix(*type);
  ASSERT_THAT(matrix.parts, SizeIs(16));
  EXPECT_EQ(matrix.paths[0][7].kind, PathKind::kNvlink);
  EXPECT_DOUBLE_EQ(matrix.paths[0][7].bandwidth.value, 300e9);
  EXPECT_EQ(matrix.paths[0][8].kind, PathKind::kPxb);
  EXPECT_DOUBLE_EQ(matrix.paths[0][8].bandwidth.value, 25e9);
  EXPECT_EQ(matrix.paths[0][15].kind, PathKind::kSys);
  EXPECT_TRUE(placement_notes(matrix).empty());
}

// A row of `nvidia-smi topo -m`: from device 0 to every NIC.
std::string nic_row(const char* preset) {
  const ServerMatrix matrix = server_matrix(*find_server_preset(preset));
  std::string row;
  for (std::size_t i = 8; i < matrix.parts.size(); ++i)
    row += std::string(to_string(matrix.paths[0][i].kind)) + " ";
  return row;
}

TEST(ServerMatrix, ShowsThePciePathsOfPublishedMatrices) {
  EXPECT_EQ(nic_row("dgx-v100"), "PIX PHB SYS SYS ");
  EXPECT_EQ(nic_row("dgx-a100-80g"), "PXB PXB SYS SYS SYS SYS SYS SYS ");
  EXPECT_EQ(nic_row("dgx-h100"), "PXB NODE NODE NODE SYS SYS SYS SYS ");
  EXPECT_EQ(nic_row("h800-8"), "PIX NODE NODE NODE SYS SYS SYS SYS ");
  EXPECT_EQ(nic_row("h20-8"), "PIX NODE NODE NODE SYS SYS SYS SYS ");
  EXPECT_EQ(nic_row("dgx-b200"), "PXB NODE NODE NODE SYS SYS SYS SYS ");
  EXPECT_EQ(nic_row("l20-8"), "NODE SYS ");
}

TEST(ServerMatrix, KnowsNoPcieSwitchesWhereTheyDoNotDivideTheNics) {
  ServerType type = *find_server_preset("dgx-h100");
  type.nic_count = 4;
  EXPECT_EQ(server_matrix(type).paths[0][8].kind, PathKind::kNode);
}

TEST(ServerMatrix, TellsWhichDevicesReachTheirNicAcrossNumaNodes) {
  const ServerType* type =
      find_server_preset("l20-8");  // NIC 1 on node 1 serves devices 1 and 3 on node 0
  ASSERT_NE(type, nullptr);
  const std::vector<std::string> notes = placement_notes(server_matrix(*type));
  ASSERT_THAT(notes, SizeIs(4));
  EXPECT_EQ(notes[0],
            "dev1 is served by nic1 across NUMA nodes (0 to 1); nic0 is nearer, so number the NICs "
            "by node or use one a device");
}

TEST(ServerMatrix, IsATableOfClassesAndOneOfBandwidths) {
  ServerType type;
  type.device_count = 2;
  type.nic_count = 1;
  type.nic_rate = {25e6};
  type.intra = {IntraKind::kShm, {4e9}, {}};
  const ServerMatrix matrix = server_matrix(type);
  EXPECT_THAT(class_table(matrix), ElementsAre(ElementsAre("", "dev0", "dev1", "nic0", "NUMA"),
                                               ElementsAre("dev0", "X", "SHM", "NODE", "0"),
                                               ElementsAre("dev1", "SHM", "X", "NODE", "0"),
                                               ElementsAre("nic0", "NODE", "NODE", "X", "0")));
  EXPECT_THAT(
      bandwidth_table(matrix),
      ElementsAre(ElementsAre("pair", "path", "bandwidth", "pairs", "meaning"),
                  ElementsAre("device - device", "SHM", "4 GB/s", "1", "memory of the host"),
                  ElementsAre("device - nic", "NODE", "200 Mbps", "2", "within a NUMA node")));
}

}  // namespace
}  // namespace regatta::topo
