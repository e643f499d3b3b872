#include "regatta/model/workload/internal/strategy_constraint.h"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/model/workload/job.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::workload {
namespace {

using testing::HasSubstr;

StrategyConstraint constraint(const std::string& text) {
  const auto parsed = parse_constraint(text, "--constraint");
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed.value_or(StrategyConstraint{.key = "tp", .values = {1}});
}

std::string refusal(const std::string& text) {
  const auto parsed = parse_constraint(text, "--constraint");
  EXPECT_FALSE(parsed) << text;
  return parsed ? "" : parsed.error().message;
}

TEST(StrategyConstraint, AdmitsWhatItSays) {
  Strategy strategy{.tp = 4, .pp = 8, .recompute = Recompute::kFull, .zero = 1};
  EXPECT_TRUE(admits(constraint("pp <= 8"), strategy));
  EXPECT_FALSE(admits(constraint("pp<8"), strategy));
  EXPECT_TRUE(admits(constraint("pp >= 8"), strategy));
  EXPECT_FALSE(admits(constraint(" pp > 8 "), strategy));
  EXPECT_TRUE(admits(constraint("zero in {0, 1}"), strategy));
  EXPECT_FALSE(admits(constraint("zero in [2,3]"), strategy));
  EXPECT_TRUE(admits(constraint("tp = 4"), strategy));
  EXPECT_FALSE(admits(constraint("tp != 4"), strategy));
  EXPECT_TRUE(admits(constraint("recompute in {none, full}"), strategy));
  EXPECT_FALSE(admits(constraint("recompute != full"), strategy));
  EXPECT_FALSE(admits(constraint("overlap = false"), strategy));
  strategy.schedule = PipelineSchedule::kZbH1;
  EXPECT_TRUE(admits(constraint("schedule == zb-h1"), strategy));
}

TEST(StrategyConstraint, IsRefusedWithTheKeyTheReasonAndTheRemedy) {
  EXPECT_THAT(refusal("ppp <= 8"), HasSubstr("--constraint: 'ppp <= 8': 'ppp' is no key"));
  EXPECT_THAT(refusal("ppp <= 8"), HasSubstr("did you mean pp?"));
  EXPECT_THAT(refusal("pp 8"), HasSubstr("write a relation after pp, like pp <= 8"));
  EXPECT_THAT(refusal("pp <="), HasSubstr("'' is no value of pp; write a whole number"));
  EXPECT_THAT(refusal("pp <= eight"), HasSubstr("'eight' is no value of pp"));
  EXPECT_THAT(refusal("pp < 0"), HasSubstr("no value of pp is that"));
  EXPECT_THAT(refusal("zero in {0, 5}"),
              HasSubstr("'5' is no value of zero; write a whole number from 0 to 3"));
  EXPECT_THAT(refusal("zero > 3"), HasSubstr("write a number from 0 to 3"));
  EXPECT_THAT(refusal("zero in 0, 1"), HasSubstr("write the values in braces"));
  EXPECT_THAT(refusal("zero in {}"), HasSubstr("'' is no value of zero"));
  EXPECT_THAT(refusal("recompute <= full"), HasSubstr("or in {none, selective"));
  EXPECT_THAT(refusal("recompute = all"), HasSubstr("take one of none, selective"));
  EXPECT_THAT(refusal(""), HasSubstr("take one of tp, pp"));
}

TEST(StrategyConstraint, IsReadAsItIsWritten) {
  for (const char* text : {"pp <= 8", "tp >= 2", "zero in {0, 1}", "cp != 4",
                           "recompute in {none, full}", "sequence_parallel in {true}"}) {
    EXPECT_EQ(to_string(constraint(text)), text);
    EXPECT_EQ(constraint(to_string(constraint(text))), constraint(text));
  }
}

// Any text gives a constraint that can be written and read again, or an error.
TEST(StrategyConstraint, OfAnyTextIsReadAgainOrRefused) {
  std::mt19937 random(11);
  const std::vector<std::string> parts = {
      "pp", "zero", "recompute", "overlap", "in", "{",           "}",   "<=",  ">=",
      "<",  ">",    "=",         "!=",      " ",  "0",           "1",   "8",   "full",
      ",",  "[",    "]",         "true",    "-1", "99999999999", "\\n", "\\0", "tp"};
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = i % 2 == 0 ? "" : parts[random() % 4];
    for (std::size_t count = random() % 8; count > 0; --count)
      text += parts[random() % parts.size()];
    const auto parsed = parse_constraint(text, "--constraint");
    if (!parsed) {
      EXPECT_THAT(parsed.error().message, testing::StartsWith("--constraint: "));
      continue;
    }
    ++read;
    const auto again = parse_constraint(to_string(*parsed), "again");
    ASSERT_TRUE(again) << text;
    EXPECT_EQ(*again, *parsed) << text;
  }
  EXPECT_GT(read, 20);
}

TEST(CheckConstraints, NameAGivenKeyThatOneExcludes) {
  StrategyRequest request;
  request.constraints = {constraint("pp <= 8"), constraint("zero in {0, 1}")};
  EXPECT_TRUE(check_request(request));
  request.pp = 16;
  EXPECT_THAT(check_request(request).error().message,
              HasSubstr("strategy: pp is given, and the constraint pp <= 8 excludes it"));
  request.pp = 8;
  EXPECT_TRUE(check_request(request));
}

TEST(ParseStrategy, ReadsConstraintsAtTheirKeysAndInAList) {
  const auto request = parse_strategy(
      "{tp: 8, pp: <= 8, zero: [0, 1], constraints: [cp = 1, \"recompute in {none, full}\"]}",
      "--strategy");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->tp, 8);
  EXPECT_FALSE(request->pp);
  EXPECT_FALSE(request->zero);
  EXPECT_THAT(request->constraints,
              testing::ElementsAre(constraint("cp = 1"), constraint("recompute in {none, full}"),
                                   constraint("pp <= 8"), constraint("zero in {0, 1}")));
  const JsonReader written(request_to_json(*request), "request");
  EXPECT_EQ(read_request(written), *request);
  EXPECT_TRUE(written.status());
  EXPECT_THAT(parse_strategy("{pp: >= 8}", "--strategy").error().message,
              HasSubstr("needs quotes: {pp: \">= 8\"}"));
  EXPECT_TRUE(parse_strategy("{pp: \">= 8\"}", "--strategy"));
  EXPECT_THAT(parse_strategy("pp <= 8", "--strategy").error().message,
              HasSubstr("a condition as --constraint"));
  const auto wrong = parse_strategy("{pp: <= many}", "--strategy");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("pp"));
  EXPECT_THAT(wrong.error().message, HasSubstr("'many' is no value of pp"));
}

}  // namespace
}  // namespace regatta::workload
