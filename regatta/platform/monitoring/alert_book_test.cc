#include "regatta/platform/monitoring/alert_book.h"

#include <gmock/gmock.h>

namespace regatta::monitoring {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr const char* kTestRules =
    R"({"rules":[{"name":"r","kind":"node_silent","after_s":10,"clear_s":30}]})";

class AlertBookTest : public testing::Test {
 protected:
  AlertBookTest() { EXPECT_TRUE(book_.set_rules(kTestRules, "test")); }
  // A second in which node n is silent, or not.
  void second(bool holds) {
    std::vector<AlertCondition> conditions;
    if (holds) conditions.push_back({.rule = "r", .object = "n", .text = "node n is silent"});
    now_ += Seconds{1};
    unix_ms_ += 1000;
    book_.observe(conditions, now_, unix_ms_);
    for (const Alert& alert : book_.take_messages())
      messages_.push_back(std::string(kAlertPhaseNames[static_cast<std::size_t>(alert.phase)]) +
                          " " + alert.object);
    store();
  }
  void seconds(int count, bool holds) {
    for (int i = 0; i < count; ++i)
      second(holds);
  }
  void store() {
    for (auto& [key, value] : book_.take_records()) {
      if (value)
        tables_.observed[key].value = *value;
      else
        tables_.observed.erase(key);
    }
  }

  AlertBook book_;
  control::ClusterTables tables_;
  Seconds now_{1000};
  std::int64_t unix_ms_ = 1'700'000'000'000;
  std::vector<std::string> messages_;
};

TEST_F(AlertBookTest, FiresOnceWhenAConditionHasHeldLongEnough) {
  seconds(10, true);
  EXPECT_THAT(messages_, IsEmpty());
  seconds(100, true);
  EXPECT_THAT(messages_, testing::ElementsAre("firing n"));
  EXPECT_EQ(book_.firing(), 1U);
}

TEST_F(AlertBookTest, TellsNobodyOfAShortCondition) {
  for (int i = 0; i < 20; ++i) {
    seconds(9, true);
    second(false);
  }
  EXPECT_THAT(messages_, IsEmpty());
}

TEST_F(AlertBookTest, IsResolvedOnceWhenTheConditionHasBeenAwayLongEnough) {
  seconds(20, true);
  for (int i = 0; i < 10; ++i) {  // it comes and goes: still one alert
    seconds(20, false);
    seconds(2, true);
  }
  EXPECT_THAT(messages_, SizeIs(1));
  seconds(40, false);
  EXPECT_THAT(messages_, testing::ElementsAre("firing n", "resolved n"));
  EXPECT_EQ(book_.firing(), 0U);
  EXPECT_THAT(book_.alerts(), SizeIs(1)) << "it is kept for a day";
  book_.observe({}, now_ + Seconds{86500}, unix_ms_ + 86'500'000);
  EXPECT_THAT(book_.alerts(), IsEmpty());
}

TEST_F(AlertBookTest, SurvivesARestartWithoutASecondMessage) {
  seconds(20, true);
  book_.set_told(book_.alerts().begin()->first, AlertPhase::kFiring);
  store();
  AlertBook again;
  ASSERT_TRUE(again.load(tables_, Seconds{5}));
  EXPECT_EQ(again.rules(), book_.rules());
  EXPECT_EQ(again.alerts(), book_.alerts());
  EXPECT_THAT(again.take_messages(), IsEmpty());
  again.observe({{.rule = "r", .object = "n", .text = "t"}}, Seconds{6}, unix_ms_);
  EXPECT_THAT(again.take_messages(), IsEmpty());
  again.observe({}, Seconds{40}, unix_ms_);
  ASSERT_THAT(again.take_messages(), SizeIs(1));
  EXPECT_EQ(again.alerts().begin()->second.phase, AlertPhase::kResolved);
}

TEST_F(AlertBookTest, TellsAfterARestartWhatNobodyWasTold) {
  seconds(20, true);
  AlertBook again;
  ASSERT_TRUE(again.load(tables_, Seconds{5}));
  ASSERT_THAT(again.take_messages(), SizeIs(1));
  EXPECT_THAT(again.take_messages(), IsEmpty());
}

TEST_F(AlertBookTest, ResolvesAlertsOfRulesThatAreGone) {
  seconds(20, true);
  ASSERT_TRUE(book_.set_rules(R"({"rules":[]})", "test"));
  second(true);
  EXPECT_THAT(messages_, testing::ElementsAre("firing n", "resolved n"));
}

TEST(AlertRules, AreReadAsTheyAreWritten) {
  const std::string text = R"({"rules":)" + alert_rules_json(default_alert_rules()) + "}";
  const auto rules = parse_alert_rules(text, "test");
  ASSERT_TRUE(rules) << rules.error().message;
  EXPECT_EQ(*rules, default_alert_rules());
}

TEST(AlertRules, NameWhatIsWrong) {
  const auto error = [](const char* text) {
    return parse_alert_rules(text, "body").error().message;
  };
  EXPECT_THAT(error(R"({"rules":[{"name":"A B","kind":"disk_low"}]})"),
              HasSubstr("body: rules[0].name: no name of a rule"));
  EXPECT_THAT(error(R"({"rules":[{"name":"a","kind":"disk_high"}]})"), HasSubstr("rules[0].kind"));
  EXPECT_THAT(error(R"({"rules":[{"name":"a","kind":"disk_low","after_s":-1}]})"),
              HasSubstr("rules[0].after_s"));
  EXPECT_THAT(error(R"({"rules":[{"name":"a","kind":"disk_low"},{"name":"a","kind":"disk_low"}]})"),
              HasSubstr("another rule has it"));
}

}  // namespace
}  // namespace regatta::monitoring
