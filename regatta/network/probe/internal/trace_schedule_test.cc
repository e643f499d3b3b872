#include "regatta/network/probe/internal/trace_schedule.h"

#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

class TraceScheduleTest : public testing::Test {
 protected:
  static std::vector<std::uint32_t> paths_of(const std::vector<EvidenceRequest>& requests) {
    std::vector<std::uint32_t> paths;
    for (const EvidenceRequest& one : requests)
      paths.push_back(std::get<TraceOrder>(one.order).path);
    return paths;
  }
  // The paths that discovery requests until it has nothing left; none is answered.
  std::vector<std::uint32_t> discovered(Seconds from) {
    std::vector<EvidenceRequest> requests;
    for (int step = 0; step < 600; ++step)
      schedule_.discover(known_, from + step * Seconds{0.05}, requests);
    return paths_of(requests);
  }

  Fabric fabric_{{.servers = 8, .servers_per_leaf = 2, .spines = 2}};
  Matrix matrix_ = plan_matrix(fabric_.graph, fabric_.routes, fabric_.seeds);
  MeasuredPaths known_{fabric_.graph, fabric_.routes, matrix_};
  TraceSchedule schedule_{fabric_.graph, matrix_};
};

TEST_F(TraceScheduleTest, RepeatsAnUnansweredRequestTwice) {
  EXPECT_THAT(discovered(Seconds{1000}), SizeIs(3 * matrix_.paths.size()));
  EXPECT_TRUE(schedule_.is_discovery_complete());
}

TEST_F(TraceScheduleTest, RequestsAPostponedPathAgain) {
  std::vector<EvidenceRequest> all;
  Seconds now{1000};
  for (; !schedule_.is_discovery_complete() || all.empty(); now += Seconds{0.05}) {
    ASSERT_LT(now.value, 1100);
    std::vector<EvidenceRequest> requests;
    schedule_.discover(known_, now, requests);
    for (const std::uint32_t path : paths_of(requests))
      schedule_.accept_answer(path);
    all.insert(all.end(), requests.begin(), requests.end());
  }
  schedule_.postpone(all.front());
  std::vector<EvidenceRequest> again;
  for (int step = 0; step < 20; ++step)
    schedule_.discover(known_, now + step * Seconds{0.05}, again);
  EXPECT_THAT(paths_of(again), ElementsAre(std::get<TraceOrder>(all.front().order).path));
}

TEST_F(TraceScheduleTest, TracesLossyPathsWithGrowingPauses) {
  const std::vector<std::uint32_t> lossy = {3};
  std::vector<double> times;
  for (int step = 0; step < 3000; ++step) {
    const Seconds now = Seconds{1000} + step * Seconds{0.01};
    std::vector<EvidenceRequest> requests;
    schedule_.trace_lossy(lossy, now, requests);
    if (!requests.empty()) times.push_back(now.value);
  }
  ASSERT_THAT(times, SizeIs(5));
  EXPECT_NEAR(times[1] - times[0], 1, 0.02);
  EXPECT_NEAR(times[4] - times[3], 8, 0.02);
}

TEST_F(TraceScheduleTest, TracesNoMoreThanSixteenLossyPathsAtOnce) {
  std::vector<std::uint32_t> lossy;
  for (std::uint32_t path = 0; path < 40; ++path)
    lossy.push_back(path);
  std::vector<EvidenceRequest> first;
  schedule_.trace_lossy(lossy, Seconds{1000}, first);
  EXPECT_THAT(first, SizeIs(16));
  std::vector<EvidenceRequest> second;
  schedule_.trace_lossy(lossy, Seconds{1000.3}, second);
  EXPECT_THAT(second, SizeIs(16));
  EXPECT_THAT(paths_of(second), Each(testing::Ge(16U))) << "the others wait for their turn";
}

}  // namespace
}  // namespace regatta::probe
