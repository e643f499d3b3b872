#include "regatta/network/probe/matrix.h"

#include <chrono>
#include <map>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

Matrix matrix_of(const Fabric& fabric, const MatrixOptions& options = {}) {
  return plan_matrix(fabric.graph, fabric.routes, fabric.seeds, options);
}

// From the one NIC to the other without a gap.
void expect_is_a_path(const topo::Graph& graph, std::span<const std::uint32_t> path, LinkId from,
                      LinkId to) {
  ASSERT_GE(path.size(), 2U);
  EXPECT_EQ(path.front(), fabric::number_of({from, true}));
  EXPECT_EQ(path.back(), fabric::number_of({to, false}));
  for (std::size_t hop = 0; hop + 1 < path.size(); ++hop)
    EXPECT_EQ(fabric::head_of(graph, path[hop]), fabric::tail_of(graph, path[hop + 1]));
}

TEST(Matrix, CoversEveryLinkBothPathsOverTwoTiers) {
  const Fabric fabric({.servers = 16, .servers_per_leaf = 4, .spines = 4});
  const Matrix matrix = matrix_of(fabric);
  const Coverage coverage = cover(fabric.graph, matrix);
  EXPECT_THAT(coverage.missing, IsEmpty());
  EXPECT_THAT(coverage.thin, IsEmpty());
  EXPECT_THAT(coverage.hidden, IsEmpty());
  EXPECT_THAT(coverage_text(fabric.graph, coverage), StartsWith("64 of 64 directed links, by "));
  for (std::uint32_t link = 0; link < 64; ++link)
    EXPECT_GE(coverage.paths_of(link).size(), 12U) << link_text(fabric.graph, link);
}

TEST(Matrix, CoversEightRailsAndThreeTiers) {
  const Fabric fabric({.servers = 48,
                       .nics = 8,
                       .rails = 8,
                       .servers_per_leaf = 8,
                       .spines = 4,
                       .leaves_per_group = 16,
                       .super_spines = 8});
  const Matrix matrix = matrix_of(fabric);
  const Coverage coverage = cover(fabric.graph, matrix);
  EXPECT_THAT(coverage.missing, IsEmpty());
  EXPECT_THAT(coverage.thin, IsEmpty());
  EXPECT_THAT(coverage.hidden, IsEmpty());
}

TEST(Matrix, TakesThePathsThatTheHashOfTheSwitchesSays) {
  const Fabric fabric(
      {.servers = 8, .servers_per_leaf = 2, .spines = 2, .leaves_per_group = 2, .super_spines = 4});
  const Matrix matrix = matrix_of(fabric);
  for (std::uint32_t k = 0; k < matrix.probes.size(); ++k) {
    const Probe& probe = matrix.probes[k];
    const auto there = matrix.paths.links(2 * k);
    const auto back = matrix.paths.links(2 * k + 1);
    expect_is_a_path(fabric.graph, there, probe.from, probe.to);
    expect_is_a_path(fabric.graph, back, probe.to, probe.from);
    const auto said =
        fabric.routes.path(probe.from, probe.to, fabric::EcmpNextHop{probe.flow, fabric.seeds});
    ASSERT_TRUE(said);
    EXPECT_TRUE(std::ranges::equal(there, *said));
    // The answer leaves from the port that it was asked from, to the one that all listen on.
    const fabric::FiveTuple answer{.from = probe.flow.to,
                                   .to = probe.flow.from,
                                   .from_port = probe.flow.from_port,
                                   .to_port = kProbePort};
    const auto answered =
        fabric.routes.path(probe.to, probe.from, fabric::EcmpNextHop{answer, fabric.seeds});
    ASSERT_TRUE(answered);
    EXPECT_TRUE(std::ranges::equal(back, *answered));
  }
}

TEST(Matrix, IsTheSameEveryTime) {
  const Fabric fabric({.servers = 12, .servers_per_leaf = 3, .spines = 3});
  const Matrix one = matrix_of(fabric);
  const Matrix two = matrix_of(fabric);
  ASSERT_EQ(one.probes.size(), two.probes.size());
  for (std::size_t k = 0; k < one.probes.size(); ++k)
    EXPECT_EQ(one.probes[k].flow, two.probes[k].flow);
}

TEST(Matrix, NamesWhatNoRouteLeadsOver) {
  // One leaf for each of two rails: nothing goes up to the spines.
  const Fabric fabric({.servers = 4, .nics = 2, .rails = 2, .servers_per_leaf = 4, .spines = 2});
  const Coverage coverage = cover(fabric.graph, matrix_of(fabric));
  EXPECT_EQ(coverage.missing.size(), 8U);
  const std::string text = coverage_text(fabric.graph, coverage);
  EXPECT_THAT(text, StartsWith("16 of 24 directed links"));
  EXPECT_THAT(text, HasSubstr("not covered, no route leads over them: leaf0-spine0 from leaf0"));
}

TEST(Matrix, NamesLinksThatCannotBeToldApart) {
  // Two servers on one leaf: whatever leaves the one comes to the other.
  const Fabric fabric({.servers = 2, .servers_per_leaf = 2, .spines = 0});
  const Coverage coverage = cover(fabric.graph, matrix_of(fabric));
  EXPECT_THAT(coverage.hidden, Not(IsEmpty()));
  EXPECT_THAT(coverage_text(fabric.graph, coverage), Not(HasSubstr("together")));
  EXPECT_THAT(overlaps_text(fabric.graph, coverage),
              HasSubstr("always together: s0.nic0-leaf0 from s0 to leaf0, and s1.nic0-leaf0 from "
                        "leaf0 to s1"));
}

TEST(Matrix, IsEmptyWhereNobodyCanBeReached) {
  const Fabric fabric({.servers = 1, .servers_per_leaf = 1, .spines = 0});
  EXPECT_THAT(matrix_of(fabric).probes, IsEmpty());
}

// Directed links that some shortest path leads over between NICs of the same number.
std::set<std::uint32_t> routed(const Fabric& fabric) {
  std::set<std::uint32_t> links;
  const int servers = static_cast<int>(fabric.cluster.servers.size());
  for (int from = 0; from < servers; ++from)
    for (int to = 0; to < servers; ++to)
      for (int nic = 0; nic < fabric.cluster.type_of(ServerId{from}).nic_count; ++nic) {
        const auto shares = ecmp_shares(fabric.graph, ServerId{from}, nic, ServerId{to}, nic);
        for (const topo::LinkShare& share : *shares)
          links.insert(fabric::number_of(share.link));
      }
  return links;
}

// Fabrics of any shape: every link on some route is covered, and no two paths are the same flow.
TEST(Matrix, CoversWhateverShapeOfFabric) {
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    const auto some = [&](int least, int most) {
      return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    };
    Shape shape;
    shape.rails = some(1, 4);
    shape.nics = shape.rails * some(1, 2);
    shape.servers_per_leaf = some(2, 6);
    shape.servers = shape.servers_per_leaf * some(2, 4);
    shape.spines = some(1, 5);
    if (i % 2 == 0) {
      shape.leaves_per_group = shape.rails * some(1, 2);
      shape.super_spines = shape.spines * some(1, 3);
    }
    SCOPED_TRACE(testing::Message() << "try " << i << ": " << shape.servers << " servers, "
                                    << shape.rails << " rails, " << shape.spines << " spines");
    const Fabric fabric(shape);
    const Matrix matrix = matrix_of(fabric);
    const Coverage coverage = cover(fabric.graph, matrix);
    const std::set<std::uint32_t> all = routed(fabric);
    EXPECT_EQ(coverage.missing.size() + all.size(), 2 * fabric.graph.links.size());
    for (const std::uint32_t link : coverage.missing)
      EXPECT_FALSE(all.contains(link)) << link_text(fabric.graph, link);
    EXPECT_THAT(coverage.thin, IsEmpty());
    std::set<fabric::FiveTuple> flows;
    for (const Probe& probe : matrix.probes)
      EXPECT_TRUE(flows.insert(probe.flow).second);
  }
}

TEST(Matrix, TakesSecondsForThousandsOfServers) {
  const Fabric fabric({.servers = 2048,
                       .nics = 8,
                       .rails = 8,
                       .servers_per_leaf = 32,
                       .spines = 32,
                       .leaves_per_group = 64,
                       .super_spines = 256});
  const auto start = std::chrono::steady_clock::now();
  const Matrix matrix = matrix_of(fabric);
  const double planned =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Coverage coverage = cover(fabric.graph, matrix);
  const double proven =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_THAT(coverage.missing, IsEmpty());
  EXPECT_THAT(coverage.thin, IsEmpty());
  std::printf("16,384 NICs, %zu links: %zu probes in %.2f s, proof in %.2f s, %zu hidden\n",
              fabric.graph.links.size(), matrix.probes.size(), planned, proven - planned,
              coverage.hidden.size());
  EXPECT_LT(matrix.probes.size(), 8U * 16'384);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(proven, 60);
#endif
}

TEST(PlanMatrix, KeepsProbesByRdmaToThePortsOfRoce) {
  const Fabric fabric({.servers = 4, .servers_per_leaf = 2, .spines = 2});
  const Matrix matrix =
      plan_matrix(fabric.graph, fabric.routes, fabric.seeds, {.transport = Transport::kRdma});
  ASSERT_FALSE(matrix.probes.empty());
  for (const Probe& probe : matrix.probes) {
    EXPECT_EQ(probe.flow.to_port, 4791);
    EXPECT_GE(probe.flow.from_port, 0xC001);
    EXPECT_EQ(answer_to(probe.flow).from_port, probe.flow.from_port);
  }
  EXPECT_TRUE(cover(fabric.graph, matrix).missing.empty());
}

}  // namespace
}  // namespace regatta::probe
