#include "regatta/app/report/internal/fabric_layout.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/app/report/internal/fabric_drawing_plan.h"
#include "regatta/app/report/internal/sample_clusters.h"
#include "regatta/model/topo/graph.h"

namespace regatta::report {
namespace {

using ::testing::ElementsAre;

FabricLayout layout_of(const topo::Cluster& cluster) {
  return lay_out_fabric(cluster, topo::build_graph(cluster), {100, 50}, 600);
}

std::vector<SwitchPlace> switches_of(const FabricLayout& layout) {
  std::vector<SwitchPlace> all = layout.supers;
  for (const GroupPlace& group : layout.groups) {
    all.insert(all.end(), group.spines.begin(), group.spines.end());
    for (const BlockPlace& block : group.blocks)
      all.insert(all.end(), block.leaves.begin(), block.leaves.end());
  }
  return all;
}

std::vector<ServerPlace> servers_of(const FabricLayout& layout) {
  std::vector<ServerPlace> all;
  for (const GroupPlace& group : layout.groups) {
    for (const BlockPlace& block : group.blocks)
      all.insert(all.end(), block.servers.begin(), block.servers.end());
  }
  return all;
}

bool overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

bool is_within(const Box& inner, const Box& outer) {
  constexpr double kRounding = 1e-6;
  return inner.x >= outer.x - kRounding && inner.right() <= outer.right() + kRounding &&
         inner.y >= outer.y - kRounding && inner.bottom() <= outer.bottom() + kRounding;
}

class EveryFabric : public ::testing::TestWithParam<SampleCluster> {};

TEST_P(EveryFabric, StandsInsideItsArea) {
  const FabricLayout layout = layout_of(cluster_of(GetParam().yaml));
  EXPECT_EQ(layout.area.x, 100);
  EXPECT_GE(layout.area.width, 600);
  // Frames may stick out of it by their padding.
  const Box area{layout.area.x, layout.area.y - kGroupPad, layout.area.width,
                 layout.area.height + kGroupPad};
  for (const SwitchPlace& place : switches_of(layout))
    EXPECT_TRUE(is_within(place.box, area)) << place.label;
  for (const ServerPlace& place : servers_of(layout))
    EXPECT_TRUE(is_within(place.card, area)) << place.label;
  for (const GapPlace& gap : layout.gaps)
    EXPECT_TRUE(is_within(gap.box, area)) << gap.lines.front();
}

TEST_P(EveryFabric, PutsNothingOnAnother) {
  const FabricLayout layout = layout_of(cluster_of(GetParam().yaml));
  std::vector<std::pair<std::string, Box>> boxes;
  for (const SwitchPlace& place : switches_of(layout))
    boxes.emplace_back("switch " + place.label, place.box);
  for (const ServerPlace& place : servers_of(layout))
    boxes.emplace_back("server " + place.label, place.card);
  for (const GapPlace& gap : layout.gaps)
    boxes.emplace_back("gap " + gap.lines.front(), gap.box);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      EXPECT_FALSE(overlap(boxes[i].second, boxes[j].second))
          << boxes[i].first << " and " << boxes[j].first;
  }
}

TEST_P(EveryFabric, KeepsDevicesAndNicsOnTheirServer) {
  const topo::Cluster cluster = cluster_of(GetParam().yaml);
  for (const ServerPlace& place : servers_of(layout_of(cluster))) {
    if (place.count > 1 || place.devices.empty()) continue;
    const topo::ServerType& type = cluster.type_of(place.first);
    EXPECT_EQ(static_cast<int>(place.devices.size()), type.device_count) << place.label;
    EXPECT_EQ(static_cast<int>(place.nics.size()), type.nic_count) << place.label;
    for (std::size_t i = 0; i < place.devices.size(); ++i) {
      EXPECT_TRUE(is_within(place.devices[i], place.card)) << place.label << " device " << i;
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_FALSE(overlap(place.devices[i], place.devices[j])) << place.label;
    }
    for (const NicPlace& nic : place.nics) {
      EXPECT_TRUE(is_within({nic.at.x, nic.at.y, 0, 0}, place.card)) << place.label;
      for (const Box& device : place.devices)
        EXPECT_FALSE(overlap({nic.at.x, nic.at.y, 0, 0}, device)) << place.label;
    }
  }
}

TEST_P(EveryFabric, LabelsWhatFits) {
  for (const SwitchPlace& place : switches_of(layout_of(cluster_of(GetParam().yaml)))) {
    EXPECT_LE(text_width(place.label, 10), place.box.width);
    EXPECT_FALSE(place.label.empty());
  }
}

std::vector<SampleCluster> all_clusters() {
  std::vector<SampleCluster> all = drawn_clusters();
  for (SampleCluster& sample : counted_clusters())
    all.push_back(std::move(sample));
  return all;
}

std::string name_of(const ::testing::TestParamInfo<SampleCluster>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryFabric, ::testing::ValuesIn(all_clusters()), name_of);

class DrawnFabric : public ::testing::TestWithParam<SampleCluster> {};

TEST_P(DrawnFabric, HasEveryServerAndEverySwitchOnce) {
  const topo::Cluster cluster = cluster_of(GetParam().yaml);
  const FabricLayout layout = layout_of(cluster);
  EXPECT_TRUE(layout.gaps.empty());
  std::multiset<int> nodes;
  for (const SwitchPlace& place : switches_of(layout))
    nodes.insert(place.node.value);
  for (const ServerPlace& place : servers_of(layout)) {
    EXPECT_EQ(place.count, 1);
    nodes.insert(place.first.value);
  }
  const std::size_t count = topo::build_graph(cluster).nodes.size();
  EXPECT_EQ(nodes.size(), count);
  for (int node = 0; node < static_cast<int>(count); ++node)
    EXPECT_EQ(nodes.count(node), 1U) << node;
}

INSTANTIATE_TEST_SUITE_P(Shapes, DrawnFabric, ::testing::ValuesIn(drawn_clusters()), name_of);

// Its NICs of one number stand below each other, under the leaf of their rail; in stacks of up to
// 20 servers where there is one rail.
void expect_straight_rails(const BlockPlace& block) {
  std::map<int, std::set<double>> columns;
  for (const ServerPlace& server : block.servers) {
    for (const NicPlace& nic : server.nics) {
      columns[nic.nic].insert(nic.at.x);
      const Box& leaf = at(block.leaves, nic.rail).box;
      EXPECT_TRUE(leaf.x < nic.at.x && nic.at.x < leaf.right()) << nic.nic;
    }
  }
  const std::size_t stacks = block.leaves.size() > 1 ? 1 : (block.servers.size() + 19) / 20;
  for (const auto& [nic, places] : columns)
    EXPECT_EQ(places.size(), stacks) << nic;
}

TEST(FabricLayout, KeepsTheRailsOfABlockStraight) {
  int blocks = 0;
  for (const SampleCluster& sample : drawn_clusters()) {
    const FabricLayout layout = layout_of(cluster_of(sample.yaml));
    if (!has_rails(layout.detail)) continue;
    for (const GroupPlace& group : layout.groups) {
      for (const BlockPlace& block : group.blocks) {
        expect_straight_rails(block);
        ++blocks;
      }
    }
  }
  EXPECT_GE(blocks, 13);
}

class CountedFabric : public ::testing::TestWithParam<SampleCluster> {};

// The servers drawn and those that the gaps count add up.
TEST_P(CountedFabric, LosesNoServer) {
  const topo::Cluster cluster = cluster_of(GetParam().yaml);
  const FabricLayout layout = layout_of(cluster);
  std::size_t servers = 0;
  std::size_t group_gaps = 0;
  for (const ServerPlace& place : servers_of(layout))
    servers += as_index(place.count);
  for (const GapPlace& gap : layout.gaps) {
    if (gap.lines.back().find(" servers") != std::string::npos)
      servers += std::stoul(gap.lines.back());
    if (gap.lines.front().find("group") != std::string::npos) ++group_gaps;
  }
  EXPECT_EQ(servers, cluster.servers.size());
  EXPECT_LE(group_gaps, 1U);
}

INSTANTIATE_TEST_SUITE_P(Shapes, CountedFabric, ::testing::ValuesIn(counted_clusters()), name_of);

FabricDetail detail_of(const std::string& name) {
  for (const SampleCluster& sample : all_clusters()) {
    if (sample.name == name) return layout_of(cluster_of(sample.yaml)).detail;
  }
  ADD_FAILURE() << "no sample " << name;
  return FabricDetail::kCounts;
}

TEST(FabricDetail, FallsAsTheClusterGrows) {
  EXPECT_EQ(detail_of("lab"), FabricDetail::kCables);
  EXPECT_EQ(detail_of("pair"), FabricDetail::kCables);
  EXPECT_EQ(detail_of("clos_16"), FabricDetail::kRails);
  EXPECT_EQ(detail_of("rails_128"), FabricDetail::kCompact);
  EXPECT_EQ(detail_of("many_blocks"), FabricDetail::kCounts);
}

TEST(FabricLayout, DrawsManySuperSpinesAsPlanes) {
  for (const SampleCluster& sample : counted_clusters()) {
    if (sample.name != "many_groups") continue;
    const FabricLayout layout = layout_of(cluster_of(sample.yaml));
    ASSERT_EQ(layout.supers.size(), 16U);
    for (const SwitchPlace& column : layout.supers)
      EXPECT_EQ(column.count, 16);
    EXPECT_EQ(layout.supers[3].label, "column 3");
    EXPECT_EQ(layout.groups.size(), 3U);
  }
}

std::vector<std::pair<std::size_t, std::size_t>> pairs(const std::vector<VisibleItem>& all) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  pairs.reserve(all.size());
  for (const VisibleItem& shown : all)
    pairs.emplace_back(shown.index, shown.skipped);
  return pairs;
}

TEST(VisibleItems, LeavesOutTheOnesBeforeTheLast) {
  using Pair = std::pair<std::size_t, std::size_t>;
  EXPECT_THAT(pairs(visible_items(3, 4)), ElementsAre(Pair{0, 0}, Pair{1, 0}, Pair{2, 0}));
  EXPECT_THAT(pairs(visible_items(4, 4)),
              ElementsAre(Pair{0, 0}, Pair{1, 0}, Pair{2, 0}, Pair{3, 0}));
  EXPECT_THAT(pairs(visible_items(9, 4)),
              ElementsAre(Pair{0, 0}, Pair{1, 0}, Pair{2, 6}, Pair{8, 0}));
  EXPECT_TRUE(visible_items(0, 4).empty());
}

TEST(FitText, CutsBetweenLetters) {
  EXPECT_EQ(fit_text("leaf0", 12, 100), "leaf0");
  const std::string cut = fit_text("a-server-with-a-long-name", 12, 90);
  EXPECT_THAT(cut, ::testing::EndsWith("..."));
  EXPECT_LE(text_width(cut, 12), 90);
  // Nine letters of two bytes each: whatever the width, none is torn.
  const std::string greek = "\u03b1\u03b2\u03b3\u03b4\u03b5\u03b6\u03b7\u03b8\u03b9";
  for (int width = 0; width < 60; width += 3)
    EXPECT_EQ(fit_text(greek, 12, width).find_first_of('.') % 2, 0U) << width;
}

}  // namespace
}  // namespace regatta::report
