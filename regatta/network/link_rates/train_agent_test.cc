#include "regatta/network/link_rates/train_agent.h"

#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"
#include "regatta/network/link_rates/internal/train_messages.h"

namespace regatta::link_rates {
namespace {

// One agent that sends to itself over the loopback interface.
class TrainAgentTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = TrainAgent::open([this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line.substr(0, line.size() - 1));
    });
    ASSERT_TRUE(opened) << opened.error().message;
    agent_.emplace(std::move(*opened));
    thread_ = std::thread([this] { EXPECT_TRUE(agent_->run(stop_)); });
  }
  void TearDown() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void order(const AgentOrder& one) {
    const std::string line = order_line(one);
    EXPECT_TRUE(agent_->order(line.substr(0, line.size() - 1)));
  }
  // The first line that begins so, within two seconds.
  std::string wait_for(const std::string& begin) {
    for (int i = 0; i < 200; ++i) {
      {
        const std::lock_guard lock(mutex_);
        for (const std::string& line : lines_)
          if (line.starts_with(begin)) return line;
      }
      os::sleep_for(Seconds{0.01});
    }
    return {};
  }

  TrainOrder train_{
      .is_sender = false,
      .train = 0xabc,
      .flow = {.from = 0x7f000001, .to = 0x7f000001, .from_port = 27951, .to_port = 27950},
      .shape = {.packets = 40, .packet_bytes = 1000, .time_to_live = 0}};
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::optional<TrainAgent> agent_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(TrainAgentTest, ReceivesTheTrainThatItAwaits) {
  order(train_);
  ASSERT_EQ(wait_for("awaits abc"), "awaits abc");
  train_.is_sender = true;
  order(train_);
  const auto sent = parse_agent_report(wait_for("sent abc"));
  ASSERT_TRUE(sent);
  EXPECT_GT(std::get<TrainSent>(*sent).offered.value, 1e6);
  const auto arrived = parse_agent_report(wait_for("arrived abc"));
  ASSERT_TRUE(arrived);
  EXPECT_EQ(std::get<TrainReceived>(*arrived).arrived, 40);
}

TEST_F(TrainAgentTest, SaysThatNothingArrived) {
  order(train_);
  EXPECT_EQ(wait_for("arrived abc"), "arrived abc 0 0");
}

TEST_F(TrainAgentTest, NamesAnAddressThatIsNotItsOwn) {
  train_.flow.to = 0xc0000201;  // 192.0.2.1, for documents
  order(train_);
  EXPECT_NE(wait_for("failed abc").find("192.0.2.1 is no address of this machine"),
            std::string::npos);
  train_.is_sender = true;
  train_.flow.from = 0xc0000201;
  train_.train = 0xabd;
  order(train_);
  EXPECT_FALSE(wait_for("failed abd").empty());
}

TEST_F(TrainAgentTest, TracesPathsOneOrderAfterTheOther) {
  for (std::uint32_t number = 1; number <= 3; ++number)
    order(PathOrder{.number = number, .flow = train_.flow, .routers = 1});
  for (const char* const traced : {"traced 1", "traced 2", "traced 3"}) {
    const auto report = parse_agent_report(wait_for(traced));
    ASSERT_TRUE(report);
    EXPECT_EQ(std::get<PathTraced>(*report).routers, std::vector<std::uint32_t>{0});  // no router
  }
}

TEST_F(TrainAgentTest, ReportsTheBytesOfItsNics) {
  order(LoadOrder{{0x7f000001}});
  const auto load = parse_agent_report(wait_for("load"));
  ASSERT_TRUE(load);
  ASSERT_EQ(std::get<LoadReport>(*load).nics.size(), 1U);
  EXPECT_EQ(std::get<LoadReport>(*load).nics[0].address, 0x7f000001U);
}

TEST_F(TrainAgentTest, RefusesOtherLines) {
  EXPECT_FALSE(agent_->order("trace 1 2 3"));
}

}  // namespace
}  // namespace regatta::link_rates
