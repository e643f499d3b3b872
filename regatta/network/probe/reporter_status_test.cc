#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/probe/reporter_listener.h"

namespace regatta::probe {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr NodeId kOne{0};
constexpr NodeId kTwo{1};

TEST(ReporterStatus, CountsWhoIsHeard) {
  ReporterStatus roll(2, Seconds{2});
  EXPECT_THAT(roll.missing(), ElementsAre(kOne, kTwo));
  roll.add_report(kTwo, Seconds{10});
  roll.add_report(kTwo, Seconds{10.5});
  EXPECT_EQ(roll.reporting(), 1U);
  EXPECT_THAT(roll.missing(), ElementsAre(kOne));
  auto news = roll.update(Seconds{11});
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news[0].server, kTwo);
  EXPECT_FALSE(news[0].is_silent);
  EXPECT_EQ(news[0].silence.value, 0);
  news = roll.update(Seconds{12.6});
  ASSERT_THAT(news, SizeIs(1)) << "who never was heard is missing, not silent";
  EXPECT_EQ(news[0].server, kTwo);
}

TEST(ReporterStatus, TellsOnceWhoFallsSilentAndWhoIsHeardAgain) {
  ReporterStatus roll(2, Seconds{2});
  roll.add_report(kOne, Seconds{10});
  roll.add_report(kTwo, Seconds{10});
  roll.add_report(kTwo, Seconds{11});
  EXPECT_THAT(roll.update(Seconds{11.9}), SizeIs(2)) << "both are heard now";
  auto news = roll.update(Seconds{12});
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_EQ(news[0].server, kOne);
  EXPECT_TRUE(news[0].is_silent);
  EXPECT_DOUBLE_EQ(news[0].silence.value, 2);
  EXPECT_EQ(roll.reporting(), 1U);
  roll.add_report(kTwo, Seconds{12.5});
  EXPECT_THAT(roll.update(Seconds{13}), IsEmpty());
  roll.add_report(kTwo, Seconds{14});
  roll.add_report(kOne, Seconds{15});
  news = roll.update(Seconds{15});
  ASSERT_THAT(news, SizeIs(1));
  EXPECT_FALSE(news[0].is_silent);
  EXPECT_DOUBLE_EQ(news[0].silence.value, 5);
  EXPECT_EQ(roll.reporting(), 2U);
  EXPECT_THAT(roll.missing(), IsEmpty());
  EXPECT_THAT(roll.update(Seconds{15.5}), IsEmpty());
}

TEST(ReporterStatus, TakesItsOwnPauseForNobodysSilence) {
  ReporterStatus roll(2, Seconds{2});
  roll.add_report(kOne, Seconds{10});
  roll.add_report(kTwo, Seconds{10});
  EXPECT_THAT(roll.update(Seconds{10.1}), SizeIs(2));
  EXPECT_THAT(roll.update(Seconds{15}), IsEmpty()) << "it stood still for 5 s";
  roll.add_report(kOne, Seconds{15.1});
  EXPECT_THAT(roll.update(Seconds{16}), IsEmpty());
  const auto news = roll.update(Seconds{17.05});
  ASSERT_THAT(news, SizeIs(1)) << "who says nothing from then on is silent";
  EXPECT_EQ(news[0].server, kTwo);
}

}  // namespace
}  // namespace regatta::probe
