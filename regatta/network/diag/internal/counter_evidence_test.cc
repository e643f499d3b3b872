#include "regatta/network/diag/internal/counter_evidence.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/test_fabric.h"

namespace regatta::diag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class CounterEvidenceTest : public testing::Test {
 protected:
  // From end a to end b of the cable.
  std::uint32_t link(const std::string& name, bool forward = true) const {
    return fabric::number_of({topo::find_link(fabric_.graph, name).value(), forward});
  }
  // The port at the end of the link has received so many packets, `errors` of them broken.
  void read(std::uint32_t link, double at, std::uint64_t packets, std::uint64_t errors,
            std::uint64_t drops = 0) {
    evidence_.add({.port = link ^ 1U,
                   .at = Seconds{at},
                   .in_packets = packets,
                   .in_errors = errors,
                   .in_drops = drops,
                   .out_errors = {},
                   .out_drops = {}});
  }
  // Readings each second, in each of which so many more packets are broken.
  void read_growing(std::uint32_t link, int seconds, std::uint64_t errors) {
    for (int i = 0; i <= seconds; ++i)
      read(link, i, static_cast<std::uint64_t>(i) * 10'000, static_cast<std::uint64_t>(i) * errors);
  }
  CounterFindings about(const Culprit& culprit, double since, double now) const {
    return evidence_.about(culprit, 0.05, Seconds{since}, Seconds{now});
  }

  fabric::TestFabric fabric_{6, 2, {1e9}};
  CounterEvidence evidence_{fabric_.graph};
  const std::uint32_t up_ = link("leaf0-spine1");
  const Culprit culprit_ = link_culprit(fabric::directed_link(up_));
};

TEST_F(CounterEvidenceTest, AgreesWithAVerdictOnALinkThatCountsErrors) {
  read_growing(up_, 8, 50);
  const CounterFindings findings = about(culprit_, 4, 8);
  EXPECT_EQ(findings.opinion, CounterOpinion::kAgrees);
  EXPECT_GE(findings.errors, 4 * 50U);
  ASSERT_THAT(findings.ports, SizeIs(1));
  EXPECT_EQ(findings.ports[0].port, up_ ^ 1U);
  EXPECT_THAT(evidence_.links_with_errors(Seconds{8}), ElementsAre(up_));
}

// As a collector that writes one line for each counter that has changed.
TEST_F(CounterEvidenceTest, TakesLinesThatComeTogetherAsOneReading) {
  for (int i = 0; i <= 4; ++i)
    for (const double later : {0.0, 0.01})
      read(up_, 30.0 * i + later, static_cast<std::uint64_t>(i) * 10'000,
           static_cast<std::uint64_t>(i) * 500);
  EXPECT_EQ(about(culprit_, 60, 121).opinion, CounterOpinion::kAgrees);
  EXPECT_THAT(evidence_.consume_silences(Seconds{140}), IsEmpty());
}

TEST_F(CounterEvidenceTest, DisagreesWhereManyPacketsHadNoError) {
  read(up_, 0, 0, 7);
  read(up_, 5, 300, 7);
  EXPECT_EQ(about(culprit_, 1, 5).opinion, CounterOpinion::kNone) << "15 of 300 are due";
  read(up_, 6, 1000, 7);
  EXPECT_EQ(about(culprit_, 1, 6).opinion, CounterOpinion::kDisagrees);
  const Culprit both = both_directions_culprit(culprit_.link);
  EXPECT_EQ(about(both, 1, 6).opinion, CounterOpinion::kNone) << "the other end says nothing";
}

// A burst as of a cable that was plugged in, and later a fault that no counter sees.
class CounterEvidenceOfAnOnset : public CounterEvidenceTest,
                                 public testing::WithParamInterface<double> {};

TEST_P(CounterEvidenceOfAnOnset, TakesNoErrorsOfBeforeIt) {
  const double onset = GetParam();
  for (int i = 0; 0.5 * i <= onset + 40; ++i) {
    const double at = 0.5 * i;
    std::uint64_t errors = 0;
    if (at >= onset - 4) errors = at < onset - 1 ? 7 : 14;
    read(up_, at, static_cast<std::uint64_t>(i) * 100, errors);
    if (at <= onset + 1) continue;
    const CounterFindings findings = about(culprit_, onset, at);
    ASSERT_EQ(findings.errors, 0U) << "seen at " << at;
    ASSERT_NE(findings.opinion, CounterOpinion::kAgrees) << "seen at " << at;
    ASSERT_LE(findings.ports[0].span.value, at - onset + 1) << "seen at " << at;
  }
  EXPECT_EQ(about(culprit_, onset, onset + 40).opinion, CounterOpinion::kDisagrees);
}

INSTANTIATE_TEST_SUITE_P(Onsets, CounterEvidenceOfAnOnset,
                         testing::Values(7.5, 8.5, 9.5, 30.0, 62.5));

TEST_F(CounterEvidenceTest, CountsFromTheReadingBeforeAFault) {
  for (int i = 0; i <= 4; ++i)
    read(up_, 10.0 * i, static_cast<std::uint64_t>(i) * 1000, i < 3 ? 0 : 50);
  for (const double onset : {21.0, 29.0}) {
    EXPECT_EQ(about(culprit_, onset, 41).errors, 50U) << onset;
    EXPECT_EQ(about(culprit_, onset, 41).ports[0].span.value, 20) << onset;
  }
}

TEST_F(CounterEvidenceTest, SaysNothingBeforeAReadingSinceTheVerdict) {
  read_growing(up_, 8, 50);
  EXPECT_EQ(about(culprit_, 9, 9).opinion, CounterOpinion::kNone);
  EXPECT_THAT(about(culprit_, 9, 9).ports, IsEmpty());
}

TEST_F(CounterEvidenceTest, TakesDropsForNoFault) {
  for (int i = 0; i < 60; ++i) {
    const auto drops = static_cast<std::uint64_t>(i) * 1000;
    read(up_, i, drops, 0, drops);
    EXPECT_FALSE(evidence_.consume_suspicion({}, Seconds{1.0 * i}));
  }
  EXPECT_THAT(evidence_.links_with_errors(Seconds{60}), IsEmpty());
  EXPECT_EQ(about(culprit_, 50, 60).ports[0].in_drops, 9000U);
}

TEST_F(CounterEvidenceTest, SuspectsALinkThatGoesOnCountingErrors) {
  std::vector<CounterSuspicion> found;
  for (int i = 0; i < 100; ++i) {
    read(up_, i, static_cast<std::uint64_t>(i) * 10'000, static_cast<std::uint64_t>(i) * 2);
    if (const auto one = evidence_.consume_suspicion({}, Seconds{1.0 * i})) found.push_back(*one);
  }
  ASSERT_THAT(found, SizeIs(1)) << "once";
  EXPECT_EQ(found[0].culprit, culprit_);
  EXPECT_GE(found[0].growth.in_errors, 20U);
  EXPECT_LE(found[0].growth.span.value, 20);
}

// From a stream of each change to SNMP each minute and later.
class CounterEvidenceOfAnInterval : public CounterEvidenceTest,
                                    public testing::WithParamInterface<double> {};

TEST_P(CounterEvidenceOfAnInterval, SuspectsALinkThatGoesOnCountingErrors) {
  std::optional<CounterSuspicion> found;
  const int readings = std::max(6, static_cast<int>(20 / GetParam()));
  for (int i = 0; i < readings && !found; ++i) {
    read(up_, i * GetParam(), static_cast<std::uint64_t>(i) * 1000,
         static_cast<std::uint64_t>(i) * 5);
    found = evidence_.consume_suspicion({}, Seconds{i * GetParam() + 0.5});
  }
  ASSERT_TRUE(found);
  EXPECT_EQ(found->culprit, culprit_);
}

INSTANTIATE_TEST_SUITE_P(Intervals, CounterEvidenceOfAnInterval,
                         testing::Values(0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 61.0, 90.0));

TEST_F(CounterEvidenceTest, SuspectsNothingForOneBurstOrTooFewErrors) {
  for (int i = 0; i < 100; ++i) {
    read(up_, i, static_cast<std::uint64_t>(i) * 1000, i < 33 ? 0 : i < 34 ? 300 : 500);
    read(link("leaf1-spine1"), i, static_cast<std::uint64_t>(i) * 100'000'000,
         static_cast<std::uint64_t>(i));
    EXPECT_FALSE(evidence_.consume_suspicion({}, Seconds{1.0 * i})) << i;
  }
}

TEST_F(CounterEvidenceTest, SuspectsNoLinkThatAVerdictExplains) {
  read_growing(up_, 40, 50);
  FaultVerdict verdict{.culprit = switch_culprit(NodeId{0}),
                       .evidence = {},
                       .since = {},
                       .at = {},
                       .alternatives = {both_directions_culprit(culprit_.link)}};
  EXPECT_FALSE(evidence_.consume_suspicion(std::span(&verdict, 1), Seconds{40}));
  verdict.alternatives.clear();
  EXPECT_TRUE(evidence_.consume_suspicion(std::span(&verdict, 1), Seconds{42}));
}

TEST_F(CounterEvidenceTest, DoesNotBlameALinkForErrorsThatASwitchMayHavePassedOn) {
  const std::uint32_t down = link("leaf1-spine1", false);
  for (int i = 0; i < 40; ++i) {
    const auto packets = static_cast<std::uint64_t>(i) * 1000;
    read(up_, i, packets, packets / 10);
    read(down, i, packets, packets / 20);
  }
  EXPECT_THAT(evidence_.links_with_errors(Seconds{40}), ElementsAre(up_));
  EXPECT_EQ(about(link_culprit(fabric::directed_link(down)), 30, 40).opinion,
            CounterOpinion::kNone);
  ASSERT_TRUE(evidence_.consume_suspicion({}, Seconds{40}));
  EXPECT_FALSE(evidence_.consume_suspicion({}, Seconds{42}));
}

TEST_F(CounterEvidenceTest, SaysWhichReadingsAreStaleAndDropsThem) {
  read_growing(up_, 8, 50);
  EXPECT_THAT(evidence_.consume_silences(Seconds{20}), IsEmpty());
  const auto stale = evidence_.consume_silences(Seconds{24});
  ASSERT_THAT(stale, SizeIs(1));
  EXPECT_EQ(fabric_.graph.nodes[stale[0].node.index()].name, "spine1");
  EXPECT_TRUE(stale[0].is_stale);
  EXPECT_EQ(stale[0].silence.value, 16);
  EXPECT_THAT(evidence_.consume_silences(Seconds{30}), IsEmpty()) << "once";
  EXPECT_THAT(evidence_.links_with_errors(Seconds{24}), IsEmpty());
  EXPECT_FALSE(evidence_.consume_suspicion({}, Seconds{24}));
  read(up_, 40, 1'000'000, 900'000);
  const auto back = evidence_.consume_silences(Seconds{40});
  ASSERT_THAT(back, SizeIs(1));
  EXPECT_FALSE(back[0].is_stale);
  EXPECT_THAT(evidence_.links_with_errors(Seconds{40}), IsEmpty())
      << "nobody knows when they were counted";
}

TEST_F(CounterEvidenceTest, WaitsLongerForACollectorThatReadsRarely) {
  for (const double at : {0.0, 30.0, 60.0})
    read(up_, at, 0, 0);
  EXPECT_THAT(evidence_.consume_silences(Seconds{149}), IsEmpty());
  EXPECT_THAT(evidence_.consume_silences(Seconds{151}), SizeIs(1));
}

TEST_F(CounterEvidenceTest, CountsNothingWhenCountersBeginAnewOrAreMissing) {
  read(up_, 0, 1000, 900);
  read(up_, 1, 10, 2);
  evidence_.add({.port = up_ ^ 1U,
                 .at = Seconds{2},
                 .in_packets = {},
                 .in_errors = {},
                 .in_drops = {},
                 .out_errors = {},
                 .out_drops = {}});
  EXPECT_FALSE(about(culprit_, 0, 2).ports[0].in_errors);
  read(up_, 3, 20, 3);
  EXPECT_EQ(about(culprit_, 0, 3).ports[0].in_errors, 1U);
}

TEST_F(CounterEvidenceTest, HoldsAFewReadingsOfAPort) {
  for (int i = 0; i < 100'000; ++i)
    read(up_, 0.01 * i, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i));
  const CounterFindings findings = about(culprit_, 0, 1000);
  EXPECT_LE(findings.ports[0].span.value, 126);
  EXPECT_GE(findings.ports[0].span.value, 110);
}

TEST_F(CounterEvidenceTest, IgnoresPortsThatNoCableHas) {
  read(99'998, 1, 0, 0);
  EXPECT_THAT(evidence_.consume_silences(Seconds{1000}), IsEmpty());
}

TEST_F(CounterEvidenceTest, BeginsAnewWhereTheClockIsSetBack) {
  read(up_, 5000, 0, 0);
  read(up_, 5001, 100, 100);
  read(up_, 1000, 200, 200);
  EXPECT_THAT(evidence_.links_with_errors(Seconds{1000}), IsEmpty());
  read(up_, 1001, 300, 300);
  EXPECT_THAT(evidence_.links_with_errors(Seconds{1001}), ElementsAre(up_));
}

}  // namespace
}  // namespace regatta::diag
