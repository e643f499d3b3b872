#include "regatta/network/probe/collector.h"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/network/probe/test_clusters.h"

namespace regatta::probe {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr Seconds kPeriod{0.01};
constexpr Seconds kWindow{0.03};
constexpr diag::Window kFirst = 1'000'000;

class CollectorOfFour : public testing::Test {
 protected:
  static Seconds at(diag::Window window) { return static_cast<double>(window) * kWindow; }

  std::string line(int node, diag::Window window, std::uint16_t answered = 3) {
    const ServerPart part = part_of(fabric_.graph, matrix_, NodeId{node});
    diag::ProbeReport report{.server = part.server, .window = window};
    report.host.control_sent = 6;
    for (const std::uint32_t probe : part.sends)
      report.sent.push_back({probe, 3, answered});
    for (const std::uint32_t probe : part.answers)
      report.arrived.push_back({probe, 3});
    std::string text = report_line(report, 3);
    text.pop_back();
    return text;
  }
  Status take(int node, diag::Window window, std::uint16_t answered = 3) {
    return collector_.accept(NodeId{node}, line(node, window, answered), at(window + 2));
  }
  std::uint64_t sent_by(std::size_t from) {
    std::uint64_t sum = 0;
    for (std::size_t to = 0; to < 4; ++to)
      sum += collector_.pair(from, to).sent;
    return sum;
  }
  std::uint64_t sent_a_window(int node) {
    return 3 * part_of(fabric_.graph, matrix_, NodeId{node}).sends.size();
  }

  Fabric fabric_{{.servers = 4, .servers_per_leaf = 2, .spines = 2}};
  Matrix matrix_ = plan_matrix(fabric_.graph, fabric_.routes, fabric_.seeds);
  Collector collector_{fabric_.graph, matrix_, kPeriod};
};

TEST_F(CollectorOfFour, CountsNothingBeforeItsBeginAndAMomentLonger) {
  ASSERT_TRUE(take(0, kFirst));
  collector_.begin(at(kFirst));
  ASSERT_TRUE(take(0, kFirst + 9, 0));
  EXPECT_EQ(sent_by(0), 0U);
  ASSERT_TRUE(take(0, kFirst + 10));
  ASSERT_TRUE(take(0, kFirst + 11));
  EXPECT_EQ(sent_by(0), 2 * sent_a_window(0));
}

TEST_F(CollectorOfFour, LetsAServerThatComesLaterSettleAlone) {
  ASSERT_TRUE(take(0, kFirst));
  collector_.begin(at(kFirst));
  for (diag::Window window = kFirst + 50; window < kFirst + 70; ++window) {
    ASSERT_TRUE(take(0, window));
    ASSERT_TRUE(take(1, window));
  }
  EXPECT_EQ(sent_by(0), 20 * sent_a_window(0));
  EXPECT_EQ(sent_by(1), 10 * sent_a_window(1));
}

TEST_F(CollectorOfFour, CountsAWindowThatIsToldAgainOnce) {
  ASSERT_TRUE(take(0, kFirst));
  collector_.begin(at(kFirst));
  ASSERT_TRUE(take(0, kFirst + 20, 1));
  ASSERT_TRUE(take(0, kFirst + 20, 3));
  std::uint64_t lost = 0;
  for (std::size_t to = 0; to < 4; ++to)
    lost += collector_.pair(0, to).lost;
  EXPECT_EQ(lost, 0U);
  EXPECT_EQ(sent_by(0), sent_a_window(0));
}

TEST_F(CollectorOfFour, RefusesWindowsThatAreYetToComeAndLeavesOutOldOnes) {
  collector_.begin(at(kFirst));
  const auto early = collector_.accept(NodeId{0}, line(0, kFirst + 1000), at(kFirst));
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error().message, HasSubstr("server s0: tells of what is yet to come"));
  EXPECT_FALSE(collector_.accept(NodeId{0}, "w 9223372036854775807 1 6 0 0", at(kFirst)));
  EXPECT_TRUE(collector_.accept(NodeId{0}, line(0, 5), at(kFirst)));
  EXPECT_EQ(sent_by(0), 0U);
}

TEST_F(CollectorOfFour, RefusesProbesOfOthers) {
  const std::uint32_t other = part_of(fabric_.graph, matrix_, NodeId{1}).sends[0];
  const auto status = collector_.accept(
      NodeId{0}, "w " + std::to_string(kFirst) + " 1 6 0 0 s " + std::to_string(other) + ":3:0",
      at(kFirst));
  EXPECT_FALSE(status);
}

// A server that fell silent and answers nobody is the culprit; one that still answers is not.
TEST_F(CollectorOfFour, BlamesASilentServerThatAnswersNobody) {
  for (int node = 0; node < 4; ++node)
    ASSERT_TRUE(take(node, kFirst));
  collector_.begin(at(kFirst));
  const auto run = [&](diag::Window from, diag::Window to, bool answers) {
    std::vector<diag::FaultVerdict> begun;
    for (diag::Window window = from; window < to; ++window) {
      for (int node = 0; node < 3; ++node) {
        const ServerPart part = part_of(fabric_.graph, matrix_, NodeId{node});
        std::string text = line(node, window);
        for (const std::uint32_t probe : part.sends)
          if (!answers && fabric_.graph.links[matrix_.probes[probe].to.index()].a == NodeId{3})
            text += " s " + std::to_string(probe) + ":3:0";
        for (const std::uint32_t probe : part.answers)
          if (!answers && fabric_.graph.links[matrix_.probes[probe].from.index()].a == NodeId{3})
            text += " a " + std::to_string(probe) + ":0";
        EXPECT_TRUE(collector_.accept(NodeId{node}, text, at(window + 2)));
      }
      for (const diag::FaultVerdict& verdict : collector_.locate(at(window + 2)).begun)
        begun.push_back(verdict);
    }
    return begun;
  };
  for (diag::Window window = kFirst; window < kFirst + 40; ++window)
    ASSERT_TRUE(take(3, window));
  EXPECT_THAT(run(kFirst, kFirst + 300, true), IsEmpty()) << "its reports may be lost";
  const auto begun = run(kFirst + 300, kFirst + 500, false);
  ASSERT_THAT(begun, SizeIs(1));
  EXPECT_EQ(begun[0].culprit, diag::server_culprit(NodeId{3}));
  EXPECT_EQ(begun[0].symptom, diag::Symptom::kSilent);
}

TEST_F(CollectorOfFour, HasRoomForTheLongestLineOfEachServer) {
  for (int node = 0; node < 4; ++node) {
    const ServerPart part = part_of(fabric_.graph, matrix_, NodeId{node});
    diag::ProbeReport report{.server = part.server, .window = std::int64_t{1} << 40};
    report.host = {.worst_gap = {1e5}, .control_sent = ~0U, .control_lost = ~0U, .overflows = ~0U};
    std::vector<Latency> latencies;
    for (const std::uint32_t probe : part.sends) {
      report.sent.push_back({probe, 0xfffe, 0xfffd});
      latencies.push_back({probe, ~0U, -1e12, -1e12, -1e12});
    }
    for (const std::uint32_t probe : part.answers)
      report.arrived.push_back({probe, 0xfffe});
    EXPECT_LE(report_line(report, 3).size(), collector_.longest_line(part.server));
    EXPECT_LE(latency_line(latencies).size(), collector_.longest_line(part.server));
  }
}

TEST_F(CollectorOfFour, TakesOrRefusesAnyBytesAndStaysSound) {
  collector_.begin(at(kFirst));
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    const int node = static_cast<int>(random() % 4);
    std::string text = line(node, kFirst + 10 + i / 100);
    if (random() % 3 == 0) text = text.substr(0, random() % (text.size() + 1));
    for (std::size_t changes = random() % 5; changes > 0 && !text.empty(); --changes) {
      const std::size_t place = random() % text.size();
      text[place] = random() % 2 == 0 ? static_cast<char>('0' + random() % 10)
                                      : " :swal\x00\xff\n"[random() % 9];
    }
    const Seconds now = at(kFirst + 12 + i / 100);
    static_cast<void>(collector_.accept(NodeId{node}, text, now).has_value());
    if (i % 100 == 0) static_cast<void>(collector_.locate(now));
  }
  for (std::size_t from = 0; from < 4; ++from)
    for (std::size_t to = 0; to < 4; ++to)
      EXPECT_LE(collector_.pair(from, to).lost, collector_.pair(from, to).sent);
}

}  // namespace
}  // namespace regatta::probe
