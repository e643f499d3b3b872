// The agent's program, spoken to over its stream, with real processes.
#include <csignal>
#include <deque>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/runtime/agent/internal/agent_handle.h"

namespace regatta::agent {
namespace {

using nlohmann::json;

bool is_alive(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = os::TempFolder::create("agent-test");
    ASSERT_TRUE(folder);
    folder_ = std::make_unique<os::TempFolder>(*std::move(folder));
    agent_.server = "s0";
    agent_.socket = folder_->path() + "/agent.sock";
    auto programs = os::executable_folder();
    ASSERT_TRUE(programs);
    os::SpawnOptions options;
    options.environment = {"REGATTA_AGENT_TOKEN=secret"};
    auto pid = os::spawn(
        {*programs + "/regatta-agent", "--listen", "unix:" + agent_.socket, "--exit-with-session"},
        options);
    ASSERT_TRUE(pid) << pid.error().message;
    agent_.pid = *pid;
  }
  void TearDown() override {
    agent_.link.reset();
    end_agent(agent_, Seconds{3.0});
  }
  void connect() {
    const auto status = connect_agent(agent_, "unix:" + agent_.socket, "secret", 0, messages_);
    ASSERT_TRUE(status) << status.error().message;
  }
  void launch(const json& spec, const std::string& program = "regatta-test-worker") const {
    proto::SessionRequest request;
    request.mutable_launch()->set_run(1);
    request.mutable_launch()->set_rank(spec.value("rank", 0));
    request.mutable_launch()->set_program(program);
    request.mutable_launch()->set_first_line(spec.dump());
    agent_.link->send(request);
  }
  void reply(const std::string& line) const {
    proto::SessionRequest request;
    request.mutable_reply()->set_line(line);
    agent_.link->send(request);
  }
  void stop(double grace_s) const {
    proto::SessionRequest request;
    request.mutable_stop()->set_grace_s(grace_s);
    agent_.link->send(request);
  }
  // Takes arrivals one by one until `wanted` says yes to the one in `message_`.
  template <typename F>
  bool wait_until(F wanted) {
    const Seconds give_up = os::monotonic_now() + Seconds{10.0};
    while (os::monotonic_now() < give_up) {
      for (auto& message : messages_.pop_all(Seconds{pending_.empty() ? 0.1 : 0.0})) {
        pending_.push_back(std::move(message));
      }
      while (!pending_.empty()) {
        message_ = std::move(pending_.front());
        pending_.pop_front();
        if (wanted(message_)) return true;
      }
    }
    return false;
  }
  bool wait_for_line(const std::string& event) {
    return wait_until([&](const AgentMessage& message) {
      if (!message.event || !message.event->has_line()) return false;
      last_line_ = json::parse(message.event->line().text());
      return last_line_["event"] == event;
    });
  }
  bool wait_for_exit() {
    return wait_until([&](const AgentMessage& a) {
      if (!a.event || !a.event->has_exit()) return false;
      exit_ = a.event->exit();
      return true;
    });
  }
  // A worker that has joined and works for ever; its process id.
  pid_t start_endless_worker(const json& extra = {}) {
    json spec{{"rank", 0}, {"steps", 100000}};
    if (!extra.empty()) spec.update(extra);
    launch(spec);
    EXPECT_TRUE(wait_for_line("endpoint"));
    reply(R"({"peers": ["a"]})");
    EXPECT_TRUE(wait_for_line("step"));
    return last_line_.value("pid", -1);
  }

  std::unique_ptr<os::TempFolder> folder_;
  AgentMessageQueue messages_;
  AgentHandle agent_;
  std::deque<AgentMessage> pending_;
  AgentMessage message_;
  json last_line_;
  proto::WorkerExit exit_;
};

TEST_F(AgentTest, CarriesAWorkersLinesAndItsEnd) {
  connect();
  launch({{"rank", 0}, {"steps", 2}, {"pad", std::string(300000, 'x')}});
  ASSERT_TRUE(wait_for_line("endpoint"));
  EXPECT_EQ(last_line_["text"], "endpoint-0");
  reply(R"({"peers": ["a"]})");
  ASSERT_TRUE(wait_for_line("step"));
  EXPECT_EQ(last_line_["peers"], json({"a"}));
  EXPECT_EQ(last_line_["spec"]["pad"].get<std::string>().size(), 300000U);
  ASSERT_TRUE(wait_for_line("done"));
  ASSERT_TRUE(wait_for_exit());
  EXPECT_EQ(exit_.status(), 0);
  EXPECT_EQ(exit_.signal(), 0);
}

TEST_F(AgentTest, RefusesASessionWithAnotherToken) {
  ASSERT_TRUE(connect_agent(agent_, "unix:" + agent_.socket, "wrong", 0, messages_));
  ASSERT_TRUE(wait_until([](const AgentMessage& a) { return !a.event; }));
  EXPECT_THAT(message_.end, testing::HasSubstr("token"));
  ::kill(agent_.pid, SIGTERM);
}

TEST_F(AgentTest, TellsTheSignalThatKilledAWorker) {
  connect();
  ::kill(start_endless_worker(), SIGKILL);
  ASSERT_TRUE(wait_for_exit());
  EXPECT_EQ(exit_.signal(), SIGKILL);
  EXPECT_FALSE(exit_.stopping());
}

TEST_F(AgentTest, TellsThatAWorkerIsPausedAndContinued) {
  connect();
  const pid_t pid = start_endless_worker();
  ::kill(pid, SIGSTOP);
  const auto is_pause = [](bool paused) {
    return [paused](const AgentMessage& a) {
      return a.event && a.event->has_pause() && a.event->pause().paused() == paused;
    };
  };
  EXPECT_TRUE(wait_until(is_pause(true)));
  ::kill(pid, SIGCONT);
  EXPECT_TRUE(wait_until(is_pause(false)));
}

TEST_F(AgentTest, TellsThatAProgramIsMissing) {
  connect();
  launch({{"rank", 0}}, "regatta-nothing");
  ASSERT_TRUE(
      wait_until([](const AgentMessage& a) { return a.event && a.event->has_launch_failure(); }));
  EXPECT_THAT(message_.event->launch_failure().message(),
              testing::StartsWith("regatta-nothing is not beside the agent"));
}

TEST_F(AgentTest, StopKillsAWorkerThatDoesNotListen) {
  connect();
  const pid_t pid = start_endless_worker({{"fail_rank", 0}, {"fail", "hang"}});
  os::sleep_for(Seconds{0.1});
  const Seconds start = os::monotonic_now();
  stop(0.3);
  ASSERT_TRUE(wait_for_exit());
  EXPECT_TRUE(exit_.stopping());
  EXPECT_EQ(exit_.signal(), SIGKILL);
  EXPECT_TRUE(wait_until([](const AgentMessage& a) { return a.event && a.event->has_stopped(); }));
  EXPECT_LT((os::monotonic_now() - start).value, 2.0);
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(AgentTest, EndsWorkersAndItselfWhenTheSessionBreaks) {
  connect();
  const pid_t pid = start_endless_worker();
  agent_.link.reset();
  EXPECT_EQ(end_agent(agent_, Seconds{5.0}), "exit status 0");
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(AgentTest, TakesItsWorkersAlongWhenItIsKilledWhileAllAreStopped) {
  connect();
  const pid_t pid = start_endless_worker();
  ::kill(agent_.pid, SIGSTOP);
  ::kill(pid, SIGSTOP);
  end_agent(agent_, Seconds{0});
  for (int i = 0; i < 100 && is_alive(pid); ++i) {
    os::sleep_for(Seconds{0.02});
  }
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(AgentTest, SendsHeartbeats) {
  connect();
  int beats = 0;
  EXPECT_TRUE(wait_until([&](const AgentMessage& a) {
    beats += a.event && a.event->has_heartbeat() ? 1 : 0;
    return beats == 3;
  }));
}

}  // namespace
}  // namespace regatta::agent
