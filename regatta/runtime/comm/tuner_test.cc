#include "regatta/runtime/comm/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace regatta::comm {
namespace {

constexpr GroupTopology kEight{
    .ranks = 8, .network = {.latency = Seconds{50e-6}, .rate = {125e6}, .connections = 8}};
constexpr std::size_t kMiB = std::size_t{1} << 20;

Tuner tuner_on(const GroupTopology& ground, const Setting& forced = {},
               Measure measure = Measure::kAll) {
  return Tuner({.ranks = ground.ranks,
                .servers = ground.ranks,
                .space = network_tuning_space(ground, forced),
                .forced = forced.algorithm,
                .measure = measure});
}

TEST(RankedAlgorithms, BeginWithFewStepsForShortAndFewBytesForLongVectors) {
  const auto first = [&](CallKind kind, std::size_t bytes) {
    return rank_algorithms({kind, bytes}, kEight).front().setting.algorithm;
  };
  EXPECT_EQ(first(CallKind::kAllReduce, 64), Algorithm::kExchange);
  EXPECT_EQ(first(CallKind::kAllReduce, 8 << 10), Algorithm::kDoubling);
  EXPECT_EQ(first(CallKind::kBroadcast, 64), Algorithm::kTree);
  EXPECT_NE(first(CallKind::kAllReduce, 64 * kMiB), Algorithm::kDoubling);
  EXPECT_NE(first(CallKind::kBroadcast, 64 * kMiB), Algorithm::kTree);
}

TEST(RankedAlgorithms, LeaveOutWhatTheModelSeesFarBehindUnlessItIsWanted) {
  const TunedCall large{CallKind::kBroadcast, 64 * kMiB};
  const auto has_tree = [](const std::vector<SettingCandidate>& ranked) {
    for (const SettingCandidate& one : ranked)
      if (one.setting.algorithm == Algorithm::kTree) return true;
    return false;
  };
  EXPECT_FALSE(has_tree(rank_algorithms(large, kEight)));
  EXPECT_TRUE(has_tree(rank_algorithms(large, kEight, Algorithm::kTree)));
}

TEST(Tuner, KeepsWhatIsForced) {
  Tuner tuner = tuner_on(kEight, {.algorithm = Algorithm::kRing, .connections = 3});
  for (int i = 0; i < 50; ++i) {
    const Setting setting = tuner.next({CallKind::kAllReduce, 64 * kMiB}).setting;
    EXPECT_EQ(setting.algorithm, Algorithm::kRing);
    EXPECT_EQ(setting.connections, 3);
  }
  EXPECT_EQ(tuner.choices().front().reason, ChoiceReason::kForced);
}

TEST(Tuner, LetsTheModelAloneDecideWhereItMayNotMeasure) {
  Tuner tuner = tuner_on(kEight, {}, Measure::kNothing);
  for (int i = 0; i < 50; ++i)
    EXPECT_FALSE(tuner.next({CallKind::kAllReduce, 64 * kMiB}).ticket.is_timed());
  EXPECT_EQ(tuner.choices().front().reason, ChoiceReason::kModel);
}

TEST(Tuner, TriesNoAlgorithmsWhereResultsMustKeepTheirBits) {
  Tuner tuner = tuner_on(kEight, {}, Measure::kTransport);
  const TunedCall call{CallKind::kAllReduce, 64 * kMiB};
  const Algorithm first = tuner.next(call).setting.algorithm;
  bool varies_connections = false;
  for (int i = 0; i < 50; ++i) {
    const auto [setting, ticket] = tuner.next(call);
    EXPECT_EQ(setting.algorithm, first);
    varies_connections |= setting.connections != 2;
    if (ticket.is_timed()) tuner.give(ticket, Seconds{1.0});
  }
  EXPECT_TRUE(varies_connections);
}

TEST(Tuner, SearchesEachOperationAndSizeClassByItself) {
  Tuner tuner = tuner_on(kEight);
  tuner.next({CallKind::kAllReduce, 64 * kMiB});
  tuner.next({CallKind::kAllReduce, 65 * kMiB});
  tuner.next({CallKind::kAllReduce, 16 * kMiB});
  tuner.next({CallKind::kBroadcast, 64 * kMiB});
  EXPECT_EQ(tuner.choices().size(), 3U);
}

Tuner measured_tuner() {
  Tuner tuner = tuner_on(kEight);
  const TunedCall call{CallKind::kAllReduce, 64 * kMiB};
  do {
    const auto [setting, ticket] = tuner.next(call);
    if (ticket.is_timed()) tuner.give(ticket, Seconds{setting.connections == 2 ? 0.5 : 1.0});
  } while (!tuner.is_settled());
  return tuner;
}

// The reason of a choice with this reason and one tried setting, once marked.
ChoiceReason marked_reason(const MeasuredSetting& used, ChoiceReason reason,
                           const Setting& forced) {
  std::vector<TuningChoice> choices = {{.reason = reason, .tried = {used}}};
  mark_forced(choices, forced);
  return choices[0].reason;
}

TEST(MarkForced, MarksGivenChunksAndConnectionsThatWereTheOnlyOnes) {
  const MeasuredSetting chunks{.setting = {.chunk_bytes = 65536, .connections = 2}};
  const Setting given{.chunk_bytes = 65536};
  EXPECT_EQ(marked_reason(chunks, ChoiceReason::kOnlyOne, given), ChoiceReason::kForced);
  EXPECT_EQ(marked_reason(chunks, ChoiceReason::kModel, {.connections = 2}), ChoiceReason::kForced);
}

TEST(MarkForced, LeavesTheReasonOfWhatWasNotGivenOrHadOthersBesideIt) {
  const MeasuredSetting used{.setting = {.chunk_bytes = 65536, .connections = 2}};
  EXPECT_EQ(marked_reason(used, ChoiceReason::kOnlyOne, {}), ChoiceReason::kOnlyOne);
  EXPECT_EQ(marked_reason(used, ChoiceReason::kOnlyOne, {.chunk_bytes = 4096, .connections = 4}),
            ChoiceReason::kOnlyOne);
  EXPECT_EQ(marked_reason(used, ChoiceReason::kMeasured, {.connections = 2}),
            ChoiceReason::kMeasured);
  // The model saw a difference to others.
  const MeasuredSetting predicted{.setting = used.setting, .predicted = Seconds{1.0}};
  EXPECT_EQ(marked_reason(predicted, ChoiceReason::kModel, {.connections = 2}),
            ChoiceReason::kModel);
}

TEST(TuningFile, IsTheTextOfItsJson) {
  const std::vector<TuningChoice> found = measured_tuner().choices();
  const nlohmann::json json = tuning_json(found);
  EXPECT_EQ(nlohmann::json::parse(format_tuning(found)), json);
  EXPECT_EQ(json["choices"][0]["operation"], "all_reduce");
  EXPECT_EQ(json["choices"][0]["why"], "measured");
  EXPECT_EQ(json["choices"][0]["tried"].size(), found[0].tried.size());
  EXPECT_EQ(tuning_json({})["choices"], nlohmann::json::array());
}

TEST(TuningFile, GivesTheNextRunWhatThisOneFound) {
  const std::vector<TuningChoice> found = measured_tuner().choices();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].reason, ChoiceReason::kMeasured);
  const auto read = parse_tuning(format_tuning(found));
  ASSERT_TRUE(read) << read.error().message;
  Tuner next = tuner_on(kEight);
  next.load(*read);
  const auto call = next.next({CallKind::kAllReduce, 64 * kMiB});
  EXPECT_EQ(call.setting, found[0].tried[found[0].chosen].setting);
  EXPECT_FALSE(call.ticket.is_timed());
  EXPECT_EQ(next.choices().front().reason, ChoiceReason::kLoaded);
}

TEST(TuningFile, DoesNotHoldForOtherNumbersOfRanks) {
  GroupTopology four = kEight;
  four.ranks = 4;
  Tuner next = tuner_on(four);
  next.load(measured_tuner().choices());
  next.next({CallKind::kAllReduce, 64 * kMiB});
  EXPECT_NE(next.choices().front().reason, ChoiceReason::kLoaded);
}

TEST(TuningFile, DoesNotHoldForServersThatLieOtherwise) {
  std::vector<TuningChoice> found = measured_tuner().choices();
  found[0].tried[found[0].chosen].setting.algorithm = Algorithm::kHierarchical;
  Tuner next = tuner_on(kEight);
  next.load(found);
  const Setting setting = next.next({CallKind::kAllReduce, 64 * kMiB}).setting;
  EXPECT_NE(setting.algorithm, Algorithm::kHierarchical);
  EXPECT_NE(next.choices().front().reason, ChoiceReason::kLoaded);
}

TEST(TuningFile, DoesNotHoldAgainstWhatIsForced) {
  const std::vector<TuningChoice> found = measured_tuner().choices();
  const Algorithm best = found[0].tried[found[0].chosen].setting.algorithm;
  const Algorithm other = best == Algorithm::kRing ? Algorithm::kHalving : Algorithm::kRing;
  Tuner next = tuner_on(kEight, {.algorithm = other});
  next.load(found);
  EXPECT_EQ(next.next({CallKind::kAllReduce, 64 * kMiB}).setting.algorithm, other);
}

TEST(TuningFile, NamesWhatIsWrong) {
  const std::string good = format_tuning(measured_tuner().choices());
  const auto error_of = [](const std::string& text) {
    const auto read = parse_tuning(text);
    return read ? "" : read.error().message;
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return error_of(text);
  };
  EXPECT_EQ(error_of(good), "");
  EXPECT_THAT(error_of("{"), testing::HasSubstr("not JSON"));
  EXPECT_THAT(error_of(good.substr(0, good.size() / 2)), testing::HasSubstr("not JSON"));
  EXPECT_THAT(error_of("{"), testing::HasSubstr("`regatta coll explain --save`"));
  EXPECT_THAT(changed("\"version\": 1", "\"version\": 7"), testing::HasSubstr("version: 7"));
  EXPECT_THAT(changed("all_reduce", "all_redu"), testing::HasSubstr("choices[0].operation: names"));
  EXPECT_THAT(changed("\"ranks\": 8", "\"ranks\": -8"),
              testing::HasSubstr("choices[0].ranks: expected an integer, at least 0"));
  EXPECT_THAT(changed("\"chosen\": ", "\"chosen\": 9"), testing::HasSubstr("chosen: not below"));
}

}  // namespace
}  // namespace regatta::comm
