#include "regatta/network/heal/internal/pending_news.h"

#include <gmock/gmock.h>

#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class PendingNewsOf : public testing::Test {
 protected:
  EventReason broken(const std::string& from, const std::string& to) const {
    return {fabric.broken_link(from, to), "probes", Seconds{5}};
  }
  RouteChange at(const std::string& node, const std::string& leaf) const {
    return {fabric.node(node), fabric.node(leaf), {}, {}, {}};
  }

  TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  PendingNews news{fabric.paths};
};

TEST_F(PendingNewsOf, AreDueOnceAllIsDone) {
  news.add_broken(broken("leaf0", "spine0"), false);
  EXPECT_THAT(news.take({{}, {at("leaf0", "leaf1")}}).broken, IsEmpty());
  EXPECT_THAT(news.take({{at("leaf0", "leaf1")}, {}}).broken, SizeIs(1));
  EXPECT_THAT(news.take({}).broken, IsEmpty());
  news.add_working(broken("leaf0", "spine0"));
  EXPECT_THAT(news.take({{}, {at("leaf0", "leaf1")}}).working, IsEmpty());
  EXPECT_THAT(news.take({}).working, SizeIs(1));
}

TEST_F(PendingNewsOf, AreDueWithEachPartThatIsDone) {
  news.add_broken(broken("spine0", "leaf2"), false);
  EXPECT_THAT(news.take({{at("leaf0", "leaf2")}, {at("leaf1", "leaf2")}}).broken, SizeIs(1));
  EXPECT_THAT(news.take({{}, {at("leaf1", "leaf2")}}).broken, IsEmpty());
  EXPECT_THAT(news.take({{at("leaf1", "leaf2")}, {}}).broken, SizeIs(1));
  EXPECT_THAT(news.take({}).broken, IsEmpty());
}

TEST_F(PendingNewsOf, DoNotWaitForChangesOfOtherFaults) {
  news.add_broken(broken("leaf0", "spine0"), false);
  EXPECT_THAT(news.take({{}, {at("leaf1", "leaf2")}}).broken, SizeIs(1));
}

TEST_F(PendingNewsOf, AreNoneWhereNobodyHasHeardThatItWasBroken) {
  const EventReason fault = broken("leaf0", "spine0");
  news.add_broken(fault, false);
  news.take({{}, {at("leaf0", "leaf1")}});
  news.add_working(fault);
  EXPECT_THAT(news.take({}).working, IsEmpty());
  // But where it was held already, and does more harm now.
  news.add_broken(fault, true);
  news.take({{}, {at("leaf0", "leaf1")}});
  news.add_working(fault);
  EXPECT_THAT(news.take({}).working, SizeIs(1));
}

TEST_F(PendingNewsOf, AreNoneWhereNobodyHasHeardThatItWasOver) {
  const EventReason fault = broken("leaf0", "spine0");
  news.add_working(fault);
  news.take({{}, {at("leaf0", "leaf1")}});
  news.add_broken(fault, false);
  EXPECT_THAT(news.take({}).broken, IsEmpty());
  news.add_working(fault);
  news.take({{at("leaf0", "leaf1")}, {at("leaf0", "leaf2")}});
  news.add_broken(fault, false);
  EXPECT_THAT(news.take({}).broken, SizeIs(1)) << "of a part they have";
}

}  // namespace
}  // namespace regatta::heal
