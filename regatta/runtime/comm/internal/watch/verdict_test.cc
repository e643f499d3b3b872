#include "regatta/runtime/comm/internal/watch/verdict.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kNames = {"rank 0", "rank 1", "rank 2", "rank 3"};

std::uint64_t code_of(CallKind kind) {
  return encode_call({.kind = kind, .reduction = {DataType::kF32, ReduceOp::kSum, 4}});
}

MemberReport in_it(int rank, CallKind kind = CallKind::kAllReduce, std::uint64_t bytes = 4096) {
  return {.rank = rank,
          .state = MemberState::kEntered,
          .knows_call = true,
          .call = code_of(kind),
          .bytes = bytes};
}

MemberReport at(int rank, MemberState state) {
  return {.rank = rank, .state = state};
}

// Rank 0 judges.
Verdict verdict_on(std::vector<MemberReport> others) {
  StalledOperation operation{.call = code_of(CallKind::kAllReduce),
                             .bytes = 4096,
                             .members = std::move(others),
                             .waited_for = {1}};
  operation.members.push_back(in_it(0));
  return diagnose_stall(operation, kNames);
}

TEST(Verdict, NamesTheOneThatCalledAnotherSize) {
  const Verdict verdict = verdict_on({in_it(1), in_it(2, CallKind::kAllReduce, 8192), in_it(3)});
  EXPECT_EQ(verdict.finding, Finding::kMismatch);
  EXPECT_THAT(verdict.ranks, ElementsAre(2));
  EXPECT_EQ(verdict.text,
            "rank 2 called all_reduce of 8 KiB (f32, sum) where rank 0 called all_reduce of 4 KiB "
            "(f32, sum): call the same on all ranks, in the same order");
}

TEST(Verdict, NamesTheJudgingRankItselfWhereTheOthersAgree) {
  const Verdict verdict =
      verdict_on({in_it(1, CallKind::kBarrier, 0), in_it(2, CallKind::kBarrier, 0),
                  at(3, MemberState::kCompleted)});
  EXPECT_EQ(verdict.finding, Finding::kMismatch);
  EXPECT_THAT(verdict.ranks, ElementsAre(0));
}

TEST(Verdict, NamesTheHigherRankWhereTwoDiffer) {
  const Verdict verdict = verdict_on({in_it(1, CallKind::kBarrier, 0)});
  EXPECT_THAT(verdict.ranks, ElementsAre(1));
  EXPECT_THAT(verdict.text, HasSubstr("rank 1 called barrier where rank 0 called all_reduce"));
}

TEST(Verdict, IsCertainOnceAMajorityHasCalledTheSame) {
  EXPECT_TRUE(verdict_on({in_it(1), in_it(2, CallKind::kBarrier, 0), in_it(3)}).is_certain);
  EXPECT_TRUE(
      verdict_on({in_it(1, CallKind::kBarrier, 0), in_it(2), at(3, MemberState::kNotCalled)})
          .ranks == std::vector<int>{1});
  EXPECT_FALSE(verdict_on({in_it(1, CallKind::kBarrier, 0), at(2, MemberState::kNotCalled),
                           at(3, MemberState::kNotCalled)})
                   .is_certain);
}

TEST(Verdict, FindsNoMismatchInACallThatIsNotKnown) {
  const Verdict verdict = verdict_on({in_it(1), at(2, MemberState::kCompleted), in_it(3)});
  EXPECT_EQ(verdict.finding, Finding::kBlocked);
  EXPECT_THAT(verdict.ranks, ElementsAre(1));
}

TEST(Verdict, NamesAStoppedProcessBeforeALateOne) {
  MemberReport stopped = at(3, MemberState::kUnknown);
  stopped.is_stopped = true;
  const Verdict verdict = verdict_on({in_it(1), at(2, MemberState::kNotCalled), stopped});
  EXPECT_EQ(verdict.finding, Finding::kStopped);
  EXPECT_THAT(verdict.ranks, ElementsAre(3));
}

TEST(Verdict, NamesAnEndedProcessBeforeAStoppedOne) {
  MemberReport stopped = at(3, MemberState::kEntered);
  stopped.is_stopped = true;
  MemberReport gone = at(1, MemberState::kUnknown);
  gone.is_gone = true;
  EXPECT_THAT(verdict_on({gone, stopped}).ranks, ElementsAre(1));
}

TEST(Verdict, NamesALateRankBeforeASilentOne) {
  const Verdict verdict =
      verdict_on({at(1, MemberState::kUnknown), at(2, MemberState::kNotCalled), in_it(3)});
  EXPECT_EQ(verdict.finding, Finding::kNotCalled);
  EXPECT_EQ(verdict.text, "rank 2 has not called it");
}

TEST(Verdict, NamesASilentRankBeforeOneThatRunsAnotherOperation) {
  MemberReport elsewhere = at(2, MemberState::kNotCalled);
  elsewhere.is_elsewhere = true;
  elsewhere.other_call = code_of(CallKind::kBarrier);
  EXPECT_THAT(verdict_on({at(1, MemberState::kUnknown), elsewhere}).ranks, ElementsAre(1));
  EXPECT_EQ(verdict_on({in_it(1), elsewhere}).text,
            "rank 2 has not called it: it is in another operation, barrier");
}

TEST(Verdict, DoesNotBlameARankThatRunsAnEarlierOperation) {
  const Verdict verdict = verdict_on(
      {at(1, MemberState::kBehind), at(2, MemberState::kUnknown), at(3, MemberState::kBehind)});
  EXPECT_EQ(verdict.finding, Finding::kSilent);
  EXPECT_THAT(verdict.ranks, ElementsAre(2));
}

TEST(Verdict, SaysThatARankRunsAnEarlierOperation) {
  const Verdict verdict = verdict_on({at(1, MemberState::kBehind), in_it(2), in_it(3)});
  EXPECT_EQ(verdict.finding, Finding::kBlocked);
  EXPECT_EQ(verdict.text, "rank 0 waits for rank 1, which is still in an earlier operation");
}

}  // namespace
}  // namespace regatta::comm
