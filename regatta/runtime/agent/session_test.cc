// A session over agents that were started by hand, as on real servers.
#include "regatta/runtime/agent/session.h"

#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::agent {
namespace {

using nlohmann::json;

constexpr std::size_t kServers = 2;
constexpr int kDevices = 2;
constexpr std::size_t kRanks = 4;

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = os::TempFolder::create("session-test");
    ASSERT_TRUE(folder);
    folder_ = std::make_unique<os::TempFolder>(*std::move(folder));
    cluster_.name = "by-hand";
    cluster_.server_types["cpu-2"] = {.name = "cpu-2", .device_count = kDevices};
    for (std::size_t i = 0; i < kServers; ++i) {
      const std::string target = fmt::format("unix:{}/s{}.sock", folder_->path(), i);
      agents_.push_back(start_agent_at(target));
      cluster_.servers.push_back({fmt::format("s{}", i), "cpu-2", target});
    }
  }
  void TearDown() override {
    for (const pid_t agent : agents_) {
      static_cast<void>(os::terminate(agent));
    }
  }
  static pid_t start_agent_at(const std::string& target) {
    const auto programs = os::executable_folder();
    auto pid = os::spawn({*programs + "/regatta-agent", "--listen", target}, {});
    return pid ? *pid : -1;
  }
  std::vector<WorkerLaunch> launches(const json& spec) const {
    std::vector<WorkerLaunch> workers;
    for (const auto& device : topo::all_devices(cluster_)) {
      workers.push_back({.device = device,
                         .program = "regatta-test-worker",
                         .spec = std::make_shared<const json>(spec)});
    }
    return workers;
  }
  // Runs a job; events are counted by kind, process ids kept by rank. `at_first_step` is called
  // once every rank has sent a step.
  Status run(Session& session, const json& spec, const std::function<void()>& at_first_step = {},
             const RankPortPlanner& plan_ports = {}) {
    pids_.clear();
    counts_.clear();
    return session.run(
        launches(spec),
        [&](Rank rank, const json& event) {
          ++counts_[event["event"]];
          if (event["event"] != "step") return;
          last_step_ = event;
          step_of_[rank.value] = event;
          if (!pids_.emplace(rank.value, event["pid"].get<pid_t>()).second) return;
          if (at_first_step && pids_.size() == kRanks) at_first_step();
        },
        stop_, plan_ports);
  }
  bool workers_are_gone() const {
    for (int i = 0; i < 100; ++i) {
      bool any = false;
      for (const auto& [rank, pid] : pids_) {
        any = any || ::kill(pid, 0) == 0;
      }
      if (!any) return true;
      os::sleep_for(Seconds{0.02});
    }
    return false;
  }

  std::unique_ptr<os::TempFolder> folder_;
  topo::Cluster cluster_;
  std::vector<pid_t> agents_;
  std::map<int, pid_t> pids_;
  std::map<std::string, int> counts_;
  json last_step_;
  std::map<int, json> step_of_;  // the last one, by rank
  std::atomic<bool> stop_ = false;
};

TEST_F(SessionTest, RunsJobsOneAfterAnother) {
  auto session = Session::open(cluster_, {});
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_FALSE(session->lab());
  for (int i = 0; i < 2; ++i) {
    const auto status = run(*session, {{"steps", 3}, {"mine", i}});
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(counts_["step"], 12);
    EXPECT_EQ(counts_["done"], 4);
    EXPECT_EQ(counts_["endpoint"], 0);
    EXPECT_EQ(last_step_["peers"], json({"endpoint-0", "endpoint-1", "endpoint-2", "endpoint-3"}));
    const json& spec = last_step_["spec"];
    EXPECT_EQ(spec["mine"], i);
    EXPECT_EQ(spec["world_size"], 4);
    EXPECT_EQ(spec["rank_names"][3], "rank 3 (s1/1)");
    EXPECT_EQ(spec["server"], fmt::format("s{}", spec["rank"].get<int>() / 2));
    EXPECT_EQ(spec["device_index"], spec["rank"].get<int>() % 2);
    EXPECT_EQ(spec["address"], "127.0.0.1");
    EXPECT_EQ(spec["job_token"].get<std::string>().size(), 32U);
  }
}

// Ranks that start again listen elsewhere.
TEST_F(SessionTest, HasPortsPlannedForTheEndpointsOfEachRun) {
  auto session = Session::open(cluster_, {});
  ASSERT_TRUE(session) << session.error().message;
  int plans = 0;
  const RankPortPlanner planner =
      [&](const std::vector<std::string>& endpoints) -> Result<PeerPorts> {
    EXPECT_THAT(endpoints,
                testing::ElementsAre("endpoint-0", "endpoint-1", "endpoint-2", "endpoint-3"));
    const auto base = static_cast<std::uint16_t>(61000 + 100 * plans++);
    return PeerPorts{.of_rank =
                         [base](std::size_t from) {
                           std::vector<std::vector<std::uint16_t>> rows(kRanks);
                           rows[0] = {static_cast<std::uint16_t>(base + from)};
                           return rows;
                         },
                     .paths_per_peer = 3};
  };
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(run(*session, {{"steps", 1}}, {}, planner));
    ASSERT_EQ(step_of_.size(), kRanks);
    for (const auto& [rank, step] : step_of_) {
      EXPECT_EQ(step["ways"], 3);
      EXPECT_EQ(step["ports"],
                json({{61000 + 100 * i + rank}, json::array(), json::array(), json::array()}));
    }
  }
  EXPECT_EQ(plans, 2);
  ASSERT_TRUE(run(*session, {{"steps", 1}}));
  EXPECT_EQ(last_step_["ports"], json::array());
}

TEST_F(SessionTest, EndsARunWhosePortsCannotBePlanned) {
  auto session = Session::open(cluster_, {});
  ASSERT_TRUE(session) << session.error().message;
  const auto status = run(*session, {{"steps", 100000}}, {}, [](const auto&) -> Result<PeerPorts> {
    return Error{Code::kInvalidInput, "no plan"};
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "no plan");
  EXPECT_TRUE(run(*session, {{"steps", 1}}));
}

TEST_F(SessionTest, NamesTheRankThatWasKilledAndEndsTheOthers) {
  auto session = Session::open(cluster_, {});
  ASSERT_TRUE(session) << session.error().message;
  const auto status = run(*session, {{"steps", 100000}}, [this] { ::kill(pids_[2], SIGKILL); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "rank 2 (s1/0): killed by signal 9 (Killed)");
  EXPECT_TRUE(workers_are_gone());
  EXPECT_TRUE(run(*session, {{"steps", 1}}));
}

TEST_F(SessionTest, NamesTheCauseAndNotTheConsequence) {
  auto session = Session::open(cluster_, {});
  ASSERT_TRUE(session);
  const auto status = run(*session, {{"steps", 100000}, {"fail_rank", 1}, {"fail", "error"}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "rank 1 (s0/1): cannot read the data");
  EXPECT_EQ(status.error().code, Code::kInvalidInput);
}

TEST_F(SessionTest, TellsTheLastWordsOfAWorkerThatExited) {
  auto session = Session::open(cluster_, {});
  ASSERT_TRUE(session);
  const auto status = run(*session, {{"steps", 100000}, {"fail_rank", 3}, {"fail", "exit"}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "rank 3 (s1/1): ended with exit status 7; its last line was: no such file");
}

TEST_F(SessionTest, EndsOnRequest) {
  auto session = Session::open(cluster_, {});
  ASSERT_TRUE(session);
  const auto status = run(*session, {{"steps", 100000}}, [this] { stop_ = true; });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "stopped on request");
  EXPECT_TRUE(workers_are_gone());
}

TEST_F(SessionTest, NamesTheServerWhoseAgentWasKilled) {
  auto session = Session::open(cluster_, {});
  ASSERT_TRUE(session);
  const auto status = run(*session, {{"steps", 100000}}, [this] { ::kill(agents_[1], SIGKILL); });
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              testing::StartsWith("server s1: the connection to its agent"));
  EXPECT_TRUE(workers_are_gone());
  EXPECT_FALSE(run(*session, {{"steps", 1}}));
}

TEST_F(SessionTest, NamesTheServerThatIsStopped) {
  auto session = Session::open(cluster_, {});
  ASSERT_TRUE(session);
  Seconds stopped;
  const auto status = run(*session, {{"steps", 100000}}, [&] {
    for (const pid_t pid : {pids_[2], pids_[3], agents_[1]}) {
      ::kill(pid, SIGSTOP);
    }
    stopped = os::monotonic_now();
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "server s1: no heartbeat for 4 s; its processes are stopped or the server is down");
  EXPECT_LT((os::monotonic_now() - stopped).value, 10.0);
  for (const pid_t pid : {pids_[2], pids_[3], agents_[1]}) {
    ::kill(pid, SIGKILL);
  }
}

TEST_F(SessionTest, RefusesAClusterThatIsHalfEmulated) {
  cluster_.servers[0].address.clear();
  const auto session = Session::open(cluster_, {});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().message,
            "cluster by-hand: only some servers have an address; give one to all or none");
}

}  // namespace
}  // namespace regatta::agent
