#include "regatta/base/rpc/worker_channel.h"

#include <array>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/core/text.h"

namespace regatta::rpc {
namespace {

using nlohmann::json;

// The agent's side of a channel, by hand.
class ChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    std::array<int, 2> to{};
    std::array<int, 2> from{};
    ASSERT_EQ(pipe(to.data()), 0);
    ASSERT_EQ(pipe(from.data()), 0);
    to_worker_ = to[1];
    from_worker_ = from[0];
    channel_ = std::make_unique<WorkerChannel>(WorkerChannel::over(to[0], from[1]));
  }
  void TearDown() override {
    close_input();
    if (from_worker_ >= 0) close(from_worker_);
  }
  void send(const std::string& text) const {
    ASSERT_EQ(write(to_worker_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void close_input() {
    if (to_worker_ >= 0) close(to_worker_);
    to_worker_ = -1;
  }
  json receive() {
    for (;;) {
      if (auto line = lines_.next()) return json::parse(*line);
      std::array<char, 4096> chunk{};
      const ssize_t got = read(from_worker_, chunk.data(), chunk.size());
      if (got <= 0) return {};
      lines_.append(std::string_view(chunk.data(), static_cast<std::size_t>(got)));
    }
  }

  int to_worker_ = -1;
  int from_worker_ = -1;
  LineSplitter lines_;
  std::unique_ptr<WorkerChannel> channel_;
};

TEST_F(ChannelTest, ReceivesTheSpecAndExchangesEndpoints) {
  send("{\"rank\": 1}\n{\"peers\": [\"a\", \"b\"]}\n");
  auto spec = channel_->receive_spec();
  ASSERT_TRUE(spec);
  EXPECT_EQ((*spec)["rank"], 1);
  auto peers = channel_->exchange("b");
  ASSERT_TRUE(peers);
  EXPECT_THAT(*peers, testing::ElementsAre("a", "b"));
  EXPECT_EQ(receive(), json({{"event", "endpoint"}, {"text", "b"}}));
}

TEST_F(ChannelTest, KeepsThePortsThatCameWithTheEndpoints) {
  send("{\"peers\": [\"a\", \"b\"], \"ports\": [[61000, 61001], []], \"ways\": 2}\n");
  ASSERT_TRUE(channel_->exchange("b"));
  const WorkerChannel::PlannedPorts& planned = channel_->planned_ports();
  EXPECT_EQ(planned.ways, 2);
  ASSERT_EQ(planned.to_rank.size(), 2U);
  EXPECT_THAT(planned.to_rank[0], testing::ElementsAre(61000, 61001));
  EXPECT_THAT(planned.to_rank[1], testing::IsEmpty());
}

TEST_F(ChannelTest, HasNoPortsWhereNoneCame) {
  send("{\"peers\": [\"a\", \"b\"]}\n");
  ASSERT_TRUE(channel_->exchange("b"));
  EXPECT_THAT(channel_->planned_ports().to_rank, testing::IsEmpty());
}

TEST_F(ChannelTest, RejectsPortsThatAreNotOneListForEachRank) {
  for (const std::string ports :
       {"[[61000]]", "[[61000], \"x\"]", "7", "[[], [\"x\"]]", "[[65536], []]"}) {
    send("{\"peers\": [\"a\", \"b\"], \"ports\": " + ports + ", \"ways\": 1}\n");
    const auto peers = channel_->exchange("b");
    ASSERT_FALSE(peers) << ports;
    EXPECT_EQ(peers.error().code, Code::kInvalidInput);
    EXPECT_THAT(peers.error().message, testing::HasSubstr("ports"));
  }
}

TEST_F(ChannelTest, RejectsALineThatIsNoObject) {
  send("[1, 2]\n");
  auto spec = channel_->receive_spec();
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, Code::kInvalidInput);
  EXPECT_EQ(spec.error().message, "message of the agent: expected an object, found a list");
}

TEST_F(ChannelTest, RejectsPeersThatAreNoTexts) {
  send("{\"peers\": [1]}\n");
  EXPECT_FALSE(channel_->exchange("a"));
}

TEST_F(ChannelTest, FailsWhenTheAgentClosesInMidLine) {
  send("{\"rank\"");
  close_input();
  auto spec = channel_->receive_spec();
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, Code::kUnavailable);
}

TEST_F(ChannelTest, FailsToEmitWhenTheAgentIsGone) {
  close(from_worker_);
  from_worker_ = -1;
  auto status = channel_->emit({{"event", "step"}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kUnavailable);
}

TEST_F(ChannelTest, WritesEventsOfManyThreadsWhole) {
  constexpr int kThreads = 4;
  constexpr int kEvents = 200;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kEvents; ++i) {
        ASSERT_TRUE(channel_->emit({{"event", "step"}, {"pad", std::string(6000, 'x')}}));
      }
    });
  }
  int seen = 0;
  for (; seen < kThreads * kEvents; ++seen) {
    const json event = receive();
    if (!event.is_object() || event["pad"].get<std::string>().size() != 6000) break;
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(seen, kThreads * kEvents);
}

TEST_F(ChannelTest, CarriesAnErrorAndItsCode) {
  ASSERT_TRUE(channel_->emit_error({Code::kTimeout, "rank 3 is missing\xff"}));
  const Error error = error_of_event(receive());
  EXPECT_EQ(error.code, Code::kTimeout);
  EXPECT_EQ(error.message, "rank 3 is missing\uFFFD");
  EXPECT_EQ(error_of_event(json::object()).code, Code::kUnavailable);
}

TEST_F(ChannelTest, OpenTakesStandardInputAndOutput) {
  std::array<int, 2> input{};
  std::array<int, 2> output{};
  ASSERT_EQ(pipe(input.data()), 0);
  ASSERT_EQ(pipe(output.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(input[0], STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    dup2(to_worker_, STDERR_FILENO);  // anything: keeps the stray line away from the test's output
    auto channel = WorkerChannel::open();
    const bool stray = write(STDOUT_FILENO, "stray\n", 6) == 6;
    char byte = 0;
    const bool ended = read(STDIN_FILENO, &byte, 1) == 0;
    const bool sent = channel && channel->emit({{"event", "done"}});
    _exit(stray && ended && sent ? 0 : 1);
  }
  close(output[1]);
  close(input[0]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  std::array<char, 256> text{};
  const ssize_t got = read(output[0], text.data(), text.size());
  EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(got)), "{\"event\":\"done\"}\n");
  close(output[0]);
  close(input[1]);
}

}  // namespace
}  // namespace regatta::rpc
