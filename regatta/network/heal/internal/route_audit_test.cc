#include "regatta/network/heal/internal/route_audit.h"

#include <gmock/gmock.h>
#include <linux/rtnetlink.h>

#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class RouteAuditOf : public testing::Test {
 protected:
  // As the healer has installed them.
  std::vector<Installed> all() const {
    std::vector<Installed> installed;
    for (const NodeId leaf : fabric.paths.routes.leaves())
      for (const NodeId node : fabric.paths.routes.leaves())
        if (node != leaf) installed.push_back({node, leaf, tables.parts(node, leaf), {}, {}});
    return installed;
  }
  // leaf0 uses spine1 alone towards leaf1.
  std::vector<Installed> changed() const {
    auto installed = all();
    for (Installed& one : installed) {
      if (one.node != fabric.node("leaf0") || one.leaf != fabric.node("leaf1")) continue;
      one.parts = {{fabric.link("leaf0", "spine1"), 1}};
      one.protocol = RTPROT_BOOT;
    }
    return installed;
  }

  TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  Tables tables{fabric.paths};
  RouteAudit audit;
};

TEST_F(RouteAuditOf, FindsNothingWhereAllIsAsInstalled) {
  EXPECT_THAT(audit.compare(tables, all(), Seconds{1}), IsEmpty());
  EXPECT_EQ(audit.next(), Seconds{2});
}

TEST_F(RouteAuditOf, NamesARouteThatDiffersInTwoReadings) {
  EXPECT_THAT(audit.compare(tables, changed(), Seconds{1}), IsEmpty());
  EXPECT_LT(audit.next(), Seconds{1.1});
  const auto altered = audit.compare(tables, changed(), audit.next());
  ASSERT_THAT(altered, SizeIs(1));
  EXPECT_EQ(altered[0].repair.node, fabric.node("leaf0"));
  EXPECT_EQ(altered[0].repair.leaf, fabric.node("leaf1"));
  EXPECT_THAT(altered[0].repair.returned, ElementsAre(fabric.link("leaf0", "spine0")));
  EXPECT_THAT(altered[0].repair.withdrawn, IsEmpty());
  EXPECT_EQ(altered[0].repair.parts, tables.parts(fabric.node("leaf0"), fabric.node("leaf1")));
  EXPECT_EQ(protocol_name(altered[0].protocol), "boot");
}

TEST_F(RouteAuditOf, ForgetsADifferenceThatWasThereForAMoment) {
  audit.compare(tables, changed(), Seconds{1});
  EXPECT_THAT(audit.compare(tables, all(), Seconds{1.02}), IsEmpty());
  EXPECT_THAT(audit.compare(tables, changed(), Seconds{1.04}), IsEmpty());
}

TEST_F(RouteAuditOf, NamesAHopThatTheHealerHadWithdrawn) {
  tables.set(fabric.node("leaf0"), fabric.node("leaf1"), {{fabric.link("leaf0", "spine1"), 1}});
  auto installed = all();
  for (Installed& one : installed)
    one.parts = even_parts(fabric.paths.routes.next_hops(one.node, one.leaf));
  audit.compare(tables, installed, Seconds{1});
  const auto altered = audit.compare(tables, installed, Seconds{2});
  ASSERT_THAT(altered, SizeIs(1));
  EXPECT_THAT(altered[0].repair.withdrawn, ElementsAre(fabric.link("leaf0", "spine0")));
}

TEST_F(RouteAuditOf, IgnoresHopsWhoseInterfaceIsOff) {
  auto installed = changed();
  for (Installed& one : installed)
    if (one.node == fabric.node("leaf0")) one.off = {fabric.link("leaf0", "spine0")};
  audit.compare(tables, installed, Seconds{1});
  EXPECT_THAT(audit.compare(tables, installed, Seconds{2}), IsEmpty());
}

TEST_F(RouteAuditOf, NamesARouteThatDiffersOtherwiseEachTime) {
  auto other = changed();
  for (Installed& one : other)
    if (one.protocol == RTPROT_BOOT) one.parts.clear();
  audit.compare(tables, changed(), Seconds{1});
  const auto altered = audit.compare(tables, other, Seconds{1.02});
  ASSERT_THAT(altered, SizeIs(1));
  EXPECT_THAT(altered[0].found, IsEmpty());
}

TEST_F(RouteAuditOf, ReadsLessOftenWhileAnotherProgramChangesOtherRoutes) {
  int readings = 0;
  for (Seconds now{1}; now < Seconds{11}; now = audit.next()) {
    audit.compare(tables, all(), now);
    audit.read_soon(now);
    ++readings;
  }
  EXPECT_LT(readings, 20);
}

TEST_F(RouteAuditOf, ReadsLessOftenWhileAnotherProgramGoesOn) {
  Seconds now{1};
  int readings = 0;
  for (; now < Seconds{11}; now = audit.next()) {
    audit.compare(tables, changed(), now);
    audit.read_soon(now);
    ++readings;
  }
  EXPECT_LT(readings, 40);  // not one each 20 ms
  // And as soon as at first once it has stopped for long enough.
  audit.compare(tables, all(), now + Seconds{1});
  audit.compare(tables, all(), now + Seconds{12});
  audit.read_soon(now + Seconds{12});
  EXPECT_LT(audit.next(), now + Seconds{12.1});
}

}  // namespace
}  // namespace regatta::heal
