#include "regatta/network/probe/prober.h"

#include <atomic>
#include <map>
#include <thread>
#include <variant>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"
#include "regatta/network/probe/internal/batch.h"
#include "regatta/network/probe/internal/report_text.h"

namespace regatta::probe {
namespace {

using testing::SizeIs;

const ServerPart kPart{.server = NodeId{2}, .sends = {4, 9}, .answers = {1, 7}};

diag::ProbeReport healthy() {
  return {.server = NodeId{2},
          .window = 123456789,
          .host = {.worst_gap = {0.000123}, .control_sent = 6},
          .sent = {{4, 3, 3}, {9, 3, 3}},
          .arrived = {{1, 3}, {7, 3}}};
}

TEST(ProberLines, NameOnlyWhatIsNotAsItShouldBe) {
  EXPECT_EQ(report_line(healthy(), 3), "w 123456789 123 6 0 0\n");
  diag::ProbeReport report = healthy();
  report.sent[1] = {9, 3, 1};
  report.arrived[0] = {1, 0};
  EXPECT_EQ(report_line(report, 3), "w 123456789 123 6 0 0 s 9:3:1 a 1:0\n");
}

TEST(ProberLines, AreReadAsTheyAreWritten) {
  diag::ProbeReport report = healthy();
  report.sent[0] = {4, 2, 0};
  report.arrived[1] = {7, 1};
  report.host.overflows = 5;
  const auto line = parse_line(report_line(report, 3), kPart, 3);
  ASSERT_TRUE(line) << line.error().message;
  const auto& read = std::get<diag::ProbeReport>(*line);
  EXPECT_EQ(report_line(read, 3), report_line(report, 3));
  EXPECT_EQ(read.server, NodeId{2});
  ASSERT_THAT(read.sent, SizeIs(2));
  EXPECT_EQ(read.sent[1].answered, 3);

  diag::VariantReport cycle{.server = NodeId{2},
                            .variant = diag::PacketVariant::kUser,
                            .cycle = 77,
                            .sent = {{4, 1, 0}, {9, 1, 1}},
                            .arrived = {{1, 1}, {7, 0}}};
  EXPECT_EQ(variant_line(cycle), "v user 77 s 4:1:0 a 7:0\n");
  const auto of_variant = parse_line(variant_line(cycle), kPart, 3);
  ASSERT_TRUE(of_variant) << of_variant.error().message;
  EXPECT_EQ(variant_line(std::get<diag::VariantReport>(*of_variant)), variant_line(cycle));

  const auto latencies = parse_line(latency_line({{9, 33, 1.5, 2.5, 90}}), kPart, 3);
  ASSERT_TRUE(latencies);
  const auto& all = std::get<std::vector<Latency>>(*latencies);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].probe, 9U);
  EXPECT_DOUBLE_EQ(all[0].most_us, 90);
}

TEST(ProberLines, ThatAreNoneAreRefused) {
  for (const char* line : {"",
                           "x",
                           "w",
                           "w 1 2 3 4",
                           "w -1 2 3 4 5",
                           "w 1 2 3 4 5 s",
                           "w 1 2 3 4 5 s 9:1",
                           "w 1 2 3 4 5 s 5:1:1",
                           "w 1 2 3 4 5 s 9:1:2",
                           "w 1 2 3 4 5 a 9:1",
                           "w 1 2 3 4 5 q 9:1",
                           "w 1 2 3 4 5 a 7:99999",
                           "l 9:1:1:1",
                           "l 5:1:1:1:1",
                           "l x",
                           "l 9:1:nan:1:1",
                           "l 9:1:1:inf:1",
                           "l 9:1:1:1:1e300",
                           "v",
                           "v large",
                           "v tiny 1",
                           "v user -1",
                           "v user 1 s 5:1:1",
                           "v user 1 s 9:0:1",
                           "v large 1 a"})
    EXPECT_FALSE(parse_line(line, kPart, 3)) << line;
}

// A server that probes itself over loopback: both ends of the probe in one.
class Loopback : public testing::Test {
 protected:
  void SetUp() override {
    matrix_.probes.push_back({LinkId{0},
                              LinkId{1},
                              {.from = INADDR_LOOPBACK,
                               .to = INADDR_LOOPBACK + 1,
                               .from_port = kFirstSourcePort,
                               .to_port = kProbePort}});
  }

  // Lines that it reports in so many seconds.
  std::vector<std::string> run(double seconds, const ServerPart& part) {
    std::vector<std::string> lines;
    auto prober = Prober::open(matrix_, part, {.period = {0.01}});
    if (!prober) {
      opened_ = prober.error();
      return lines;
    }
    std::atomic<bool> stop = false;
    std::thread ends([&] {
      os::sleep_for(Seconds{seconds});
      stop = true;
    });
    EXPECT_TRUE(prober->run(stop, [&](const std::string& line) -> Status {
      lines.push_back(line);
      return {};
    }));
    ends.join();
    return lines;
  }

  Matrix matrix_;
  Error opened_;
};

TEST_F(Loopback, AnswersAndCountsWhatItSends) {
  const ServerPart part{.server = NodeId{0}, .sends = {0}, .answers = {0}};
  const auto lines = run(3, part);
  if (!opened_.message.empty()) GTEST_SKIP() << opened_.message;
  int sent = 0;
  int answered = 0;
  int arrived = 0;
  int windows = 0;
  int latencies = 0;
  std::map<diag::Window, diag::ProbeReport> last;
  std::map<std::pair<diag::PacketVariant, diag::Window>, diag::VariantReport> cycles;
  for (const std::string& line : lines) {
    const auto one = parse_line(line, part, 3);
    ASSERT_TRUE(one) << line;
    if (const auto* report = std::get_if<diag::ProbeReport>(&*one))
      last[report->window] = *report;
    else if (const auto* variant = std::get_if<diag::VariantReport>(&*one))
      cycles[{variant->variant, variant->cycle}] = *variant;
    else
      latencies += static_cast<int>(std::get<std::vector<Latency>>(*one).size());
  }
  // Three seconds hold twelve cycles of each variant, of which the first and last may be missing.
  EXPECT_GE(cycles.size(), 16U);
  for (const auto& [key, report] : cycles) {
    EXPECT_EQ(report.sent[0].answered, report.sent[0].sent);
    EXPECT_EQ(report.arrived[0].arrived, report.sent[0].sent);
  }
  for (const auto& [window, report] : last) {
    ++windows;
    sent += report.sent[0].sent;
    answered += report.sent[0].answered;
    arrived += report.arrived[0].arrived;
    EXPECT_EQ(report.host.control_lost, 0U);
  }
  EXPECT_GT(windows, 50);
  EXPECT_GT(sent, 100);
  EXPECT_EQ(sent, answered);
  EXPECT_EQ(sent, arrived);
  EXPECT_GE(latencies, 1);
}

TEST_F(Loopback, TellsThatNobodyAnswers) {
  matrix_.probes[0].flow.to_port = 9;  // nobody there
  const ServerPart part{.server = NodeId{0}, .sends = {0}, .answers = {}};
  const auto lines = run(0.5, part);
  if (!opened_.message.empty()) GTEST_SKIP() << opened_.message;
  bool told = false;
  for (const std::string& line : lines)
    told = told || line.find(" s 0:3:0") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST_F(Loopback, HearsNobodyButThoseWhomItProbes) {
  matrix_.probes[0].flow.to_port = 9;  // nobody there
  const ServerPart part{.server = NodeId{0}, .sends = {0}, .answers = {0}};
  std::atomic<bool> stop = false;
  std::thread stranger([&] {
    const auto socket = open_socket(0, INADDR_LOOPBACK + 7);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = ::htons(kProbePort);
    to.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    while (socket && !stop) {
      const std::int64_t now = os::system_ns();
      for (const std::uint32_t magic : {kProbeMagic, kAnswerMagic}) {
        const Payload payload{
            .magic = magic, .probe = 0, .round = now / 10'000'000, .sent_ns = now};
        static_cast<void>(::sendto(socket->get(), &payload, sizeof payload, 0,
                                   reinterpret_cast<const sockaddr*>(&to), sizeof to));
      }
      os::sleep_for(Seconds{0.002});
    }
  });
  const auto lines = run(0.5, part);
  stop = true;
  stranger.join();
  if (!opened_.message.empty()) GTEST_SKIP() << opened_.message;
  int windows = 0;
  for (const std::string& line : lines) {
    if (line.find(" s 0:3:0") == std::string::npos) continue;
    ++windows;
    EXPECT_NE(line.find(" a 0:0"), std::string::npos) << line;
  }
  EXPECT_GT(windows, 3);
}

// Arrived packets from three ports, in the order of the ports.
std::vector<Packet> sent_from_three_ports(bool may_be_raw, bool& is_raw, std::string& error) {
  std::vector<Packet> came;
  const auto receiver = open_socket(kProbePort);
  auto sender =
      Sender::open({kFirstSourcePort, kFirstSourcePort + 1, kFirstSourcePort + 2}, may_be_raw);
  if (!receiver || !sender) {
    error = receiver ? sender.error().message : receiver.error().message;
    return came;
  }
  is_raw = sender->is_raw();
  std::vector<Packet> packets;
  for (std::uint16_t i = 0; i < 3; ++i)
    packets.push_back(
        {.local = INADDR_LOOPBACK + 5,
         .remote = INADDR_LOOPBACK,
         .local_port = static_cast<std::uint16_t>(kFirstSourcePort + i),
         .remote_port = kProbePort,
         .payload = {.magic = kProbeMagic, .probe = i, .round = std::int64_t{1} << (20 * i)}});
  EXPECT_EQ(sender->send(packets), 3U);
  receive_all(receiver->get(), came);
  return came;
}

TEST(Sender, SaysFromWhichPortAndAddressRawOrNot) {
  for (const bool may_be_raw : {true, false}) {
    bool is_raw = false;
    std::string error;
    const auto came = sent_from_three_ports(may_be_raw, is_raw, error);
    if (!error.empty()) GTEST_SKIP() << error;
    EXPECT_EQ(is_raw && !may_be_raw, false);
    ASSERT_THAT(came, SizeIs(3)) << (is_raw ? "raw" : "a socket for each port");
    for (std::uint16_t i = 0; i < 3; ++i) {
      EXPECT_EQ(came[i].remote_port, kFirstSourcePort + i);
      EXPECT_EQ(came[i].remote, INADDR_LOOPBACK + 5);
      EXPECT_EQ(came[i].local, INADDR_LOOPBACK);
      EXPECT_EQ(came[i].payload.probe, i);
      EXPECT_EQ(came[i].payload.round, 1LL << (20 * i));
      EXPECT_GT(came[i].arrived_ns, 0);
    }
  }
}

TEST_F(Loopback, RefusesAPortThatIsTaken) {
  const auto other = open_socket(kProbePort);
  if (!other) GTEST_SKIP() << other.error().message;
  run(0.1, {.server = NodeId{0}, .sends = {0}, .answers = {0}});
  EXPECT_EQ(opened_.code, Code::kConflict);
  EXPECT_THAT(opened_.message, testing::HasSubstr("UDP port 27900: is taken"));
}

}  // namespace
}  // namespace regatta::probe
