#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/prober.h"

namespace regatta::probe {
namespace {

constexpr std::uint32_t kHere = 0x7f000001;

// A connection over loopback, both ends.
struct Pipe {
  os::UniqueFd from;
  os::UniqueFd to;

  Pipe() {
    const os::UniqueFd listener(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = ::htonl(kHere);
    socklen_t size = sizeof place;
    auto* const raw = reinterpret_cast<sockaddr*>(&place);
    EXPECT_EQ(::bind(listener.get(), raw, size), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), raw, &size), 0);
    from.reset(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(::connect(from.get(), raw, size), 0);
    to.reset(::accept(listener.get(), nullptr, nullptr));
    port = ntohs(place.sin_port);
  }
  void send() const {
    const std::string text(1000, 'x');
    EXPECT_EQ(::send(from.get(), text.data(), text.size(), 0), 1000);
  }

  std::uint16_t port = 0;
};

// A server whose only NIC is the loopback of this machine.
class Scouts : public testing::Test {
 protected:
  void SetUp() override {
    matrix_.probes.push_back(
        {.from = {}, .to = {}, .flow = {kHere, 0x7f000002, 27931, kProbePort, 17}});
    auto trace_agent = TraceAgent::open(matrix_, {.server = NodeId{0}, .sends = {0}, .answers = {}},
                                        {.window = {0.03}, .send = [this](const std::string& line) {
                                           const std::lock_guard lock(mutex_);
                                           lines_.push_back(line);
                                         }});
    ASSERT_TRUE(trace_agent) << trace_agent.error().message;
    trace_agent_ = std::move(*trace_agent);
  }
  // The next line; empty when none comes.
  std::string next(Seconds patience = Seconds{5}) {
    const Seconds until = os::monotonic_now() + patience;
    while (os::monotonic_now() < until) {
      {
        const std::lock_guard lock(mutex_);
        if (read_ < lines_.size()) return lines_[read_++];
      }
      os::sleep_for(Seconds{0.005});
    }
    return "";
  }
  std::optional<Evidence> next_evidence() {
    const std::string line = next();
    if (line.empty()) return std::nullopt;
    auto evidence = parse_evidence(line.substr(0, line.size() - 1));
    EXPECT_TRUE(evidence) << line;
    return *evidence;
  }

  Matrix matrix_;
  std::optional<TraceAgent> trace_agent_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::size_t read_ = 0;
};

TEST_F(Scouts, CountWhatConnectionsSentBetweenTwoOrders) {
  const Pipe pipe;
  pipe.send();
  ASSERT_TRUE(trace_agent_->order("flows"));
  EXPECT_EQ(next(Seconds{0.3}), "") << "with nothing to compare with";
  for (int i = 0; i < 5; ++i)
    pipe.send();
  ASSERT_TRUE(trace_agent_->order("flows"));
  const auto evidence = next_evidence();
  ASSERT_TRUE(evidence);
  std::uint32_t segments = 0;
  for (const FlowCount& one : std::get<FlowCounts>(*evidence).flows) {
    EXPECT_EQ(one.flow.from, kHere);
    if (one.flow.to_port == pipe.port) segments = one.segments;
  }
  EXPECT_GE(segments, 1U);
  EXPECT_LE(segments, 5U);
}

TEST_F(Scouts, SayOfARouterThatDoesNotExistThatItDoesNotAnswer) {
  ASSERT_TRUE(trace_agent_->order("trace 0 2 3"));
  const auto evidence = next_evidence();
  ASSERT_TRUE(evidence);
  const auto& trace = std::get<Trace>(*evidence);
  EXPECT_EQ(trace.path, 0U);
  ASSERT_EQ(trace.hops.size(), 2U);
  for (const TraceHop& hop : trace.hops) {
    EXPECT_EQ(hop.sent, 3);
    EXPECT_EQ(hop.answered, 0);
    EXPECT_EQ(hop.router, 0U);
  }
}

TEST_F(Scouts, RefuseOrdersThatAreNoneOrForOthers) {
  EXPECT_FALSE(trace_agent_->order("go home"));
  const Status other = trace_agent_->order("trace 1 2 3");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, "the collector asks for a path that does not begin here");
  EXPECT_TRUE(trace_agent_->order("trace 0 2 3"));
}

TEST_F(Scouts, TellNothingOnceTheyHaveStopped) {
  ASSERT_TRUE(trace_agent_->order("trace 0 2 16"));
  trace_agent_->stop();
  const std::string before = next(Seconds{0.05});
  EXPECT_TRUE(trace_agent_->order("trace 0 2 3"));
  EXPECT_EQ(next(Seconds{0.3}), "");
}

}  // namespace
}  // namespace regatta::probe
