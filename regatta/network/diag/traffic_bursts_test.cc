#include "regatta/network/diag/traffic_bursts.h"

#include <gmock/gmock.h>

namespace regatta::diag {
namespace {

constexpr Seconds kInterval{0.01};

// 3 s of 10 ms; `bytes` in each of [begin, end).
std::vector<double> series(std::size_t begin, std::size_t end, double bytes) {
  std::vector<double> out(300, 0.0);
  for (std::size_t i = begin; i < end; ++i)
    out[i] = bytes;
  return out;
}

TEST(PeaksOf, ShowsAPeakThatASecondHides) {
  const Peaks peaks = peaks_of(series(100, 110, 3e6), kInterval);
  EXPECT_NEAR(peaks.mean.value, 1e7, 1);
  EXPECT_NEAR(peaks.peak.value, 3e8, 1);
  EXPECT_NEAR(peaks.peak_coarse.value, 3e7, 1);
  EXPECT_NEAR(peaks.to_mean(), 30, 1e-9);
  EXPECT_NEAR(peaks.to_mean_coarse(), 3, 1e-9);
}

TEST(PeaksOf, IsFlatWhereNothingOrAlwaysTheSameIsSent) {
  EXPECT_EQ(peaks_of({}, kInterval).to_mean(), 1);
  EXPECT_EQ(peaks_of(series(0, 0, 0), kInterval).to_mean(), 1);
  EXPECT_NEAR(peaks_of(series(0, 300, 1e6), kInterval).to_mean(), 1, 1e-9);
}

TEST(PeaksOf, TakesAShortSeriesAsOneSecond) {
  const std::vector<double> bytes{1e6, 0, 0, 0};
  EXPECT_NEAR(peaks_of(bytes, kInterval).to_mean_coarse(), 1, 1e-9);
  EXPECT_NEAR(peaks_of(bytes, kInterval).to_mean(), 4, 1e-9);
}

TEST(FindBursts, FindsNoneInSilence) {
  EXPECT_TRUE(find_bursts({}, kInterval).empty());
  EXPECT_TRUE(find_bursts(series(0, 0, 0), kInterval, {.threshold = {1e6}}).empty());
}

TEST(FindBursts, TellsBeginEndBytesAndPeak) {
  auto bytes = series(50, 54, 1e6);
  bytes[52] = 2e6;
  const auto bursts = find_bursts(bytes, kInterval);
  ASSERT_EQ(bursts.size(), 1u);
  EXPECT_EQ(bursts[0].begin, 50u);
  EXPECT_EQ(bursts[0].end, 54u);
  EXPECT_EQ(bursts[0].bytes.value, 5000000);
  EXPECT_NEAR(bursts[0].peak.value, 2e8, 1);
  EXPECT_TRUE(bursts[0].is_hidden);
}

TEST(FindBursts, KeepsABurstWholeOverAShortGapAndEndsItAtALongOne) {
  auto bytes = series(50, 60, 1e6);
  bytes[55] = 0;
  EXPECT_EQ(find_bursts(bytes, kInterval).size(), 1u);
  EXPECT_EQ(find_bursts(bytes, kInterval, {.gap_most = 0}).size(), 2u);
  bytes[56] = 0;
  EXPECT_EQ(find_bursts(bytes, kInterval).size(), 2u);
}

TEST(FindBursts, SaysThatALongBurstShowsAtASecondToo) {
  const auto bursts = find_bursts(series(50, 200, 1e6), kInterval, {.threshold = {5e7}});
  ASSERT_EQ(bursts.size(), 1u);
  EXPECT_FALSE(bursts[0].is_hidden);
}

TEST(FindBursts, CountsOnlyWhatReachesTheThreshold) {
  EXPECT_TRUE(find_bursts(series(50, 54, 1e6), kInterval, {.threshold = {1.1e8}}).empty());
  EXPECT_EQ(find_bursts(series(50, 54, 1e6), kInterval, {.threshold = {0.9e8}}).size(), 1u);
}

TEST(BytesOfServers, AddsWhatEachSendsAndReceives) {
  const TrafficSeries traffic{{},
                              kInterval,
                              {{NodeId{0}, NodeId{1}, {1, 2}},
                               {NodeId{0}, NodeId{2}, {10, 0}},
                               {NodeId{2}, NodeId{0}, {0, 5}}}};
  const auto servers = bytes_of_servers(traffic);
  ASSERT_EQ(servers.size(), 3u);
  EXPECT_EQ(servers[0].sent, (std::vector<double>{11, 2}));
  EXPECT_EQ(servers[0].received, (std::vector<double>{0, 5}));
  EXPECT_EQ(servers[1].received, (std::vector<double>{1, 2}));
  EXPECT_TRUE(servers[1].sent.empty());
}

TEST(BytesOfLinks, AddsTheFlowsThatCrossALink) {
  const TrafficSeries traffic{
      {}, kInterval, {{NodeId{0}, NodeId{1}, {1, 2}}, {NodeId{0}, NodeId{2}, {10, 0}}}};
  const auto links = bytes_of_links(traffic, {{0, 3}, {0}}, 5);
  EXPECT_EQ(links[0], (std::vector<double>{11, 2}));
  EXPECT_EQ(links[3], (std::vector<double>{1, 2}));
  EXPECT_TRUE(links[1].empty());
}

}  // namespace
}  // namespace regatta::diag
