#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

OperationView operation(std::uint64_t sequence, OperationStatus status,
                        CallKind kind = CallKind::kAllReduce) {
  return {.sequence = sequence,
          .call = encode_call({.kind = kind}),
          .bytes = kind == CallKind::kBarrier ? 0U : 4096U,
          .started = {1},
          .progressed = {static_cast<double>(sequence)},
          .status = status};
}

RankView rank(int number, const OperationView& under_way) {
  RankView view{.state = 'S', .world = 5, .rank = number};
  for (int i = 0; i < 3; ++i)
    view.peers.push_back({.name = "rank " + std::to_string(i)});
  view.groups.push_back({.id = 1, .rank = number, .members = {0, 1, 2}, .collective = under_way});
  return view;
}

TEST(OpenOperations, IsNobodyWhereAllIsDone) {
  const std::vector<RankView> views = {rank(0, operation(3, OperationStatus::kDone)),
                                       rank(1, operation(3, OperationStatus::kDone))};
  EXPECT_THAT(find_open_operations(views, MissingView::kElsewhere), IsEmpty());
}

TEST(OpenOperations, IsTheRankThatHasNotCalled) {
  const auto open = find_open_operations(
      {rank(0, operation(4, OperationStatus::kRuns)), rank(1, operation(3, OperationStatus::kDone)),
       rank(2, operation(4, OperationStatus::kRuns))},
      MissingView::kElsewhere);
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].sequence, 4U);
  EXPECT_EQ(open[0].progressed.value, 4);
  EXPECT_EQ(open[0].verdict.finding, Finding::kNotCalled);
  EXPECT_THAT(open[0].verdict.ranks, ElementsAre(1));
}

TEST(OpenOperations, IsWhoCalledSomethingElseEvenIfItIsPastIt) {
  RankView past = rank(1, operation(5, OperationStatus::kRuns));
  past.flights.push_back(
      {.group = 1, .operation = operation(4, OperationStatus::kDone, CallKind::kBarrier)});
  const auto open = find_open_operations({rank(0, operation(4, OperationStatus::kRuns)), past,
                                          rank(2, operation(4, OperationStatus::kRuns))},
                                         MissingView::kElsewhere);
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].verdict.finding, Finding::kMismatch);
  EXPECT_THAT(open[0].verdict.ranks, ElementsAre(1));
}

TEST(OpenOperations, IsWhoLeftNoFile) {
  const std::vector<RankView> views = {rank(0, operation(4, OperationStatus::kRuns)),
                                       rank(2, operation(4, OperationStatus::kRuns))};
  const auto open = find_open_operations(views, MissingView::kLeftNoFile);
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].verdict.text, "rank 1 left no flight file: killed, stopped or cut off");
  // With views of running processes it may be on another machine.
  EXPECT_EQ(find_open_operations(views, MissingView::kElsewhere)[0].verdict.finding,
            Finding::kBlocked);
}

TEST(OpenOperations, IsTheStoppedProcess) {
  RankView stopped = rank(2, operation(4, OperationStatus::kRuns));
  stopped.state = 'T';
  const auto open = find_open_operations({rank(0, operation(4, OperationStatus::kRuns)), stopped},
                                         MissingView::kElsewhere);
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].verdict.finding, Finding::kStopped);
}

}  // namespace
}  // namespace regatta::comm
