#include "regatta/network/probe/internal/measured_paths.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/fabric/routes.h"
#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::Each;
using PathMatch = MeasuredPaths::PathMatch;

// Four spines, so that a leaf has four paths to send what goes to another leaf.
class KnowsPaths : public testing::Test {
 protected:
  Trace trace_of(std::uint32_t path) const {
    Trace trace{.window = 7, .path = path, .hops = {}};
    const auto links = matrix_.paths.links(path);
    for (const std::uint32_t link : links.first(links.size() - 1))
      trace.hops.push_back(
          {1, 1, topo::address_of(LinkId{static_cast<int>(link / 2)}, link % 2 == 0)});
    return trace;
  }
  // The leaf of its sender takes its next uplink; nobody behind that answers.
  Trace other_trace(std::uint32_t path) const {
    Trace trace = trace_of(path);
    const auto hops = fabric_.routes.next_hops(leaf_of(path), leaf_of(path ^ 1U));
    const auto at = std::ranges::find(hops, matrix_.paths.links(path)[1]) - hops.begin();
    const std::uint32_t taken = hops[static_cast<std::size_t>(at + 1) % hops.size()];
    trace.hops[1].router = topo::address_of(LinkId{static_cast<int>(taken / 2)}, taken % 2 == 0);
    trace.hops[2] = {.sent = 1};
    return trace;
  }
  NodeId leaf_of(std::uint32_t path) const {
    return fabric::head_of(fabric_.graph, matrix_.paths.links(path).front());
  }
  // From leaf to leaf; all that leave this leaf, or none that does.
  std::vector<std::uint32_t> paths_from(NodeId leaf, bool from = true) const {
    std::vector<std::uint32_t> paths;
    for (std::uint32_t path = 0; path < matrix_.paths.size(); ++path)
      if (matrix_.paths.links(path).size() == 4 && (leaf_of(path) == leaf) == from)
        paths.push_back(path);
    return paths;
  }
  std::vector<bool> unknown(const std::vector<std::uint32_t>& paths) {
    const auto all = known_.consume_unknown_paths();
    std::vector<bool> chosen;
    chosen.reserve(paths.size());
    for (const std::uint32_t path : paths)
      chosen.push_back(all && (*all)[path]);
    return chosen;
  }

  Fabric fabric_{{.servers = 8, .servers_per_leaf = 2, .spines = 4}};
  Matrix matrix_ = plan_matrix(fabric_.graph, fabric_.routes, fabric_.seeds);
  MeasuredPaths known_{fabric_.graph, fabric_.routes, matrix_};
  NodeId leaf_ = fabric_.routes.leaves().front();
};

TEST_F(KnowsPaths, AsPlannedUntilSomebodySaysOtherwise) {
  EXPECT_FALSE(known_.consume_unknown_paths());
  for (std::uint32_t path = 0; path < matrix_.paths.size(); ++path)
    EXPECT_EQ(known_.accept(trace_of(path), false, Seconds{1}), PathMatch::kAsPlanned);
  EXPECT_FALSE(known_.consume_unknown_paths()) << "nothing is new";
  EXPECT_EQ(known_.confirmed(), matrix_.paths.size());
  EXPECT_TRUE(known_.is_hash_known());
}

TEST_F(KnowsPaths, OfASwitchThatHashesOtherwiseOnlyWhereItsRoutersConfirmThem) {
  const auto paths = paths_from(leaf_);
  ASSERT_GE(paths.size(), 3U);
  EXPECT_EQ(known_.accept(trace_of(paths[0]), false, Seconds{1}), PathMatch::kAsPlanned);
  EXPECT_EQ(known_.accept(other_trace(paths[1]), false, Seconds{2}), PathMatch::kElsewhere);
  EXPECT_FALSE(known_.consume_rehash()) << "nobody has ever seen it as planned";
  std::vector<bool> expected(paths.size(), true);
  expected[0] = false;  // was seen to be as planned
  EXPECT_EQ(unknown(paths), expected);
  EXPECT_EQ(known_.accept(trace_of(paths[2]), false, Seconds{3}), PathMatch::kAsPlanned);
  expected[2] = false;
  EXPECT_EQ(unknown(paths), expected);
  EXPECT_EQ(known_.unknown(), paths.size() - 2);
}

TEST_F(KnowsPaths, NoLongerAfterASwitchHasChangedItsHash) {
  const auto paths = paths_from(leaf_);
  for (std::uint32_t path = 0; path < matrix_.paths.size(); ++path)
    known_.accept(trace_of(path), false, Seconds{1});
  EXPECT_EQ(known_.accept(other_trace(paths[0]), false, Seconds{2}), PathMatch::kElsewhere);
  EXPECT_TRUE(known_.consume_rehash());
  EXPECT_THAT(unknown(paths), Each(true)) << "all that it chooses for";
  // A path that loses its packets behind the leaf stays unknown; a path confirmed again does not.
  Trace lossy = trace_of(paths[1]);
  lossy.hops[1] = lossy.hops[2] = {.sent = 4};
  EXPECT_EQ(known_.accept(lossy, false, Seconds{3}), PathMatch::kAsPlanned);
  EXPECT_EQ(known_.accept(trace_of(paths[2]), false, Seconds{3}), PathMatch::kAsPlanned);
  EXPECT_EQ(known_.accept(other_trace(paths[3]), false, Seconds{3}), PathMatch::kElsewhere);
  EXPECT_FALSE(known_.consume_rehash()) << "the same change";
  const auto after = unknown(paths);
  EXPECT_TRUE(after[0] && after[1] && after[3]);
  EXPECT_FALSE(after[2]);
}

TEST_F(KnowsPaths, WellOfOtherSwitches) {
  for (std::uint32_t path = 0; path < matrix_.paths.size(); ++path)
    known_.accept(trace_of(path), false, Seconds{1});
  known_.accept(other_trace(paths_from(leaf_).front()), false, Seconds{2});
  EXPECT_THAT(unknown(paths_from(leaf_, false)), Each(false));
}

TEST_F(KnowsPaths, AndKeepsNothingWhileSomethingIsBroken) {
  const auto paths = paths_from(leaf_);
  EXPECT_EQ(known_.accept(other_trace(paths[0]), true, Seconds{2}), PathMatch::kElsewhereAsKnown);
  EXPECT_FALSE(known_.consume_unknown_paths());
  EXPECT_EQ(known_.elsewhere(), 0U);
}

}  // namespace
}  // namespace regatta::probe
