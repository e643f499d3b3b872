#include "regatta/network/link_rates/internal/train_schedule.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "regatta/network/link_rates/test_rates.h"

namespace regatta::link_rates {
namespace {

class TrainScheduleTest : public testing::Test {
 protected:
  // Runs trains to the end, each as long as its links need; returns when the last one was over.
  Seconds run(TrainSchedule& schedule) {
    const std::vector<bool> busy(2 * fabric_.graph.links.size());
    Seconds now{0};
    std::map<std::size_t, Seconds> on_their_way;  // until
    for (int step = 0; !schedule.is_done() && step < 2'000'000; ++step) {
      for (auto at = on_their_way.begin(); at != on_their_way.end();) {
        const auto one = at++;
        if (now < one->second) continue;
        schedule.finish(one->first, BytesPerSecond{1e9}, now);
        on_their_way.erase(one);
      }
      while (const auto path = schedule.start_next(now, busy)) {
        std::set<std::uint32_t> links;
        for (const auto& [other, until] : on_their_way)
          for (const std::uint32_t link : schedule.path(other).links)
            links.insert(link);
        for (const std::uint32_t link : schedule.path(*path).links)
          EXPECT_FALSE(links.contains(link));
        const Seconds length = frame_bytes(schedule.shape(*path)) / BytesPerSecond{1e9};
        for (const std::uint32_t link : schedule.path(*path).loaded_links())
          taken_[link] += length;
        on_their_way[*path] = now + length;
        most_together_ = std::max(most_together_, on_their_way.size());
      }
      now += Seconds{1e-3};
    }
    return now;
  }

  const Fabric fabric_{{.servers = 8, .servers_per_leaf = 2, .spines = 2}};
  const RatePlan plan_ = plan_rates(fabric_.graph, fabric_.routes, fabric_.seeds);
  std::map<std::uint32_t, Seconds> taken_;
  std::size_t most_together_ = 0;
};

TEST_F(TrainScheduleTest, KeepsEveryLinkBelowItsShare) {
  for (const std::size_t together : {1U, 4U}) {
    TrainSchedule schedule(fabric_.graph, {.share = 0.05, .together = together});
    schedule.add(plan_.paths);
    taken_.clear();
    const Seconds end = run(schedule);
    EXPECT_TRUE(schedule.is_done());
    EXPECT_EQ(schedule.arrived(), 3 * schedule.paths());
    EXPECT_EQ(schedule.finished(), schedule.paths());
    for (const auto& [link, time] : taken_)
      EXPECT_LE(time / end, 0.051);
  }
}

TEST_F(TrainScheduleTest, SendsTrainsTogetherThatShareNothing) {
  TrainSchedule schedule(fabric_.graph, {.share = 1, .together = 4});
  schedule.add(plan_.paths);
  run(schedule);
  EXPECT_GT(most_together_, 1U);
  EXPECT_LE(most_together_, 4U);
}

TEST_F(TrainScheduleTest, WaitsForLinksWithOtherTraffic) {
  TrainSchedule schedule(fabric_.graph, {.share = 0.05});
  schedule.add(plan_.paths);
  std::vector<bool> busy(2 * fabric_.graph.links.size(), true);
  EXPECT_FALSE(schedule.start_next({0}, busy));
  const std::uint32_t first = plan_.paths[0].links[0];
  busy.assign(busy.size(), false);
  busy[first] = true;
  const auto path = schedule.start_next({0}, busy);
  ASSERT_TRUE(path);
  for (const std::uint32_t link : schedule.path(*path).links)
    EXPECT_NE(link, first);
}

TEST_F(TrainScheduleTest, GivesUpAPathWhoseTrainsNeverArrive) {
  TrainSchedule schedule(fabric_.graph, {.share = 1, .trains = 3, .tries = 9});
  schedule.add(std::span(plan_.paths).first(1));
  const std::vector<bool> busy(2 * fabric_.graph.links.size());
  int sent = 0;
  for (Seconds now{0}; !schedule.is_done(); now += Seconds{1}) {
    const auto path = schedule.start_next(now, busy);
    ASSERT_TRUE(path);
    ++sent;
    schedule.finish(*path, std::nullopt, now);
  }
  EXPECT_EQ(sent, 9);
  EXPECT_TRUE(schedule.rates(0).empty());
}

TEST_F(TrainScheduleTest, SendsOneTrainOverEachPathBeforeTheSecond) {
  TrainSchedule schedule(fabric_.graph, {.share = 1, .trains = 2});
  schedule.add(std::span(plan_.paths).first(5));
  const std::vector<bool> busy(2 * fabric_.graph.links.size());
  std::set<std::size_t> seen;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(schedule.rounds(busy), 0);
    const auto path = schedule.start_next({1.0 * i}, busy);
    ASSERT_TRUE(path);
    seen.insert(*path);
    schedule.finish(*path, BytesPerSecond{1e9}, {1.0 * i});
  }
  EXPECT_EQ(seen.size(), 5U);
  EXPECT_EQ(schedule.rounds(busy), 1);
  for (std::size_t path = 1; path < 5; ++path)
    schedule.settle(path);
  EXPECT_EQ(schedule.finished(), 4U);
  EXPECT_EQ(schedule.start_next({10}, busy), 0U);
  EXPECT_FALSE(schedule.start_next({20}, busy));
}

TEST_F(TrainScheduleTest, MeasuresAgainWhatWasDisturbed) {
  TrainSchedule schedule(fabric_.graph, {.share = 1, .trains = 1});
  schedule.add(std::span(plan_.paths).first(1));
  const std::vector<bool> busy(2 * fabric_.graph.links.size());
  schedule.finish(*schedule.start_next({0}, busy), BytesPerSecond{5}, {0});
  EXPECT_TRUE(schedule.is_done());
  schedule.discard_last(0);
  EXPECT_FALSE(schedule.is_done());
  EXPECT_EQ(schedule.arrived(), 0U);
}

}  // namespace
}  // namespace regatta::link_rates
