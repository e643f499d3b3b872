// The agent's program with the real core of the controller: what holds when the agent is killed,
// stopped and cut off.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "regatta/base/core/text.h"
#include "regatta/platform/node_agent/internal/journal_file.h"
#include "regatta/platform/node_agent/internal/process_end.h"
#include "regatta/platform/node_agent/internal/run_folder.h"
#include "regatta/platform/node_agent/internal/test_controller.h"
#include "regatta/platform/node_agent/internal/test_web_controller.h"

namespace regatta::node_agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class AgentProgramTest : public testing::Test {
 protected:
  TestController::Options options(Seconds lease = Seconds{30}) {
    return {.socket = folder_.path() + "/controller", .lease = lease, .heartbeat = Seconds{0.05}};
  }
  // A script that notes each of its starts by the attempt.
  std::string noting(const std::string& rest) {
    return "echo $REGATTA_JOB.$REGATTA_ATTEMPT.$REGATTA_REPLICA >> " + starts_ + "; " + rest;
  }
  std::map<std::string, int> starts() {
    std::map<std::string, int> counts;
    const auto text = os::read_file(starts_);
    if (text)
      for (const std::string& line : split(*text, '\n'))
        if (!line.empty()) ++counts[line];
    return counts;
  }
  std::vector<std::string> run_folders() {
    std::vector<std::string> folders;
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_.path() + "/state/runs", error))
      folders.push_back(entry.path().string());
    return folders;
  }
  void expect_nothing_left() {
    for (const std::string& run : run_folders())
      EXPECT_THAT(processes_with_variable("REGATTA_RUN=" + run), IsEmpty()) << run;
    for (const char* root :
         {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"}) {
      std::error_code error;
      for (const auto& entry :
           std::filesystem::directory_iterator(std::string(root) + "/regatta-" + node_, error))
        EXPECT_FALSE(entry.is_directory()) << entry.path();
    }
  }
  void TearDown() override {
    agent_.kill();
    for (const std::string& run : run_folders())
      for (const pid_t pid : processes_with_variable("REGATTA_RUN=" + run))
        static_cast<void>(os::send_signal(pid, SIGKILL));
    for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"})
      static_cast<void>(os::remove_cgroup(std::string(root) + "/regatta-" + node_));
  }

  os::TempFolder folder_ = os::TempFolder::create("regatta-agent").value();
  std::string starts_ = folder_.path() + "/starts";
  std::string node_ = "test-" + std::to_string(::getpid());
  AgentProcess agent_{folder_.path(), node_};
};

TEST_F(AgentProgramTest, RunsAJobAndSendsItsLog) {
  TestController controller(options());
  agent_.start();
  const auto job = controller.submit(noting("echo hello; sleep 0.2; echo end"));
  ASSERT_TRUE(controller.work_until(
      [&] { return controller.job(job).phase == control::JobPhase::kRunning; }, Seconds{10}));
  controller.request_log({.request = 1, .key = {job, 1, 0}, .is_following = true});
  ASSERT_TRUE(controller.work_until([&] { return controller.has_whole_log(); }, Seconds{10}));
  EXPECT_EQ(controller.log(), "hello\nend\n");
  ASSERT_TRUE(controller.work_until([&] { return controller.is_over(job); }, Seconds{10}));
  EXPECT_EQ(controller.job(job).phase, control::JobPhase::kSucceeded);
  EXPECT_TRUE(agent_.end().is_success());
  expect_nothing_left();
}

TEST_F(AgentProgramTest, RunsAJobAsItsUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0711), 0);
  TestController controller(options());
  agent_.start();
  const auto job = controller.submit("id -un; echo $HOME $USER; pwd; touch file", "nobody");
  ASSERT_TRUE(controller.work_until([&] { return controller.is_over(job); }, Seconds{10}));
  controller.request_log({.request = 1, .key = {job, 1, 0}});
  ASSERT_TRUE(controller.work_until([&] { return controller.has_whole_log(); }, Seconds{10}));
  EXPECT_THAT(controller.log(), HasSubstr("nobody\n/nonexistent nobody\n"));
  EXPECT_THAT(controller.log(), HasSubstr("/runs/1.1.0/work\n"));
  EXPECT_EQ(controller.job(job).phase, control::JobPhase::kSucceeded) << controller.log();
  const auto unknown = controller.submit("true", "no-such-user");
  ASSERT_TRUE(controller.work_until([&] { return controller.is_over(unknown); }, Seconds{10}));
  EXPECT_EQ(controller.job(unknown).exit_status, 126);
  controller.request_log({.request = 2, .key = {unknown, 1, 0}});
  EXPECT_TRUE(controller.work_until(
      [&] { return controller.log().find("does not know it") != std::string::npos; }, Seconds{5}));
}

TEST_F(AgentProgramTest, ReportsTheStatusOfARankThatFails) {
  TestController controller(options());
  agent_.start({"--no-cgroups"});
  const auto job = controller.submit("exit 5");
  ASSERT_TRUE(controller.work_until([&] { return controller.is_over(job); }, Seconds{10}));
  EXPECT_EQ(controller.job(job).phase, control::JobPhase::kFailed);
  EXPECT_EQ(controller.job(job).exit_status, 5);
}

TEST_F(AgentProgramTest, EndsACancelledJobAndWhatItLeftBehind) {
  TestController controller(options());
  agent_.start({"--no-cgroups"});
  const auto job = controller.submit(noting("setsid sleep 60 & sleep 60"));
  ASSERT_TRUE(controller.work_until([&] { return !starts().empty(); }, Seconds{10}));
  controller.cancel(job);
  ASSERT_TRUE(controller.work_until([&] { return controller.is_over(job); }, Seconds{10}));
  EXPECT_EQ(controller.job(job).phase, control::JobPhase::kCancelled);
  expect_nothing_left();
}

TEST_F(AgentProgramTest, FindsARunningReplicaAgainAfterItsOwnRestart) {
  TestController controller(options());
  agent_.start();
  const std::string go = folder_.path() + "/go";
  const auto job = controller.submit(noting("while ! [ -e " + go + " ]; do sleep 0.02; done"));
  ASSERT_TRUE(controller.work_until([&] { return !starts().empty(); }, Seconds{10}));
  agent_.kill();
  agent_.start();
  controller.work_for(Seconds{0.3});
  EXPECT_FALSE(controller.is_over(job));
  ASSERT_TRUE(os::write_file(go, ""));
  ASSERT_TRUE(controller.work_until([&] { return controller.is_over(job); }, Seconds{10}));
  EXPECT_EQ(controller.job(job).phase, control::JobPhase::kSucceeded);
  EXPECT_EQ(controller.job(job).attempts, 1);
  EXPECT_EQ(starts().size(), 1U);
}

TEST_F(AgentProgramTest, LearnsOfAnEndThatItDidNotSee) {
  TestController controller(options());
  agent_.start();
  const auto job = controller.submit(noting("sleep 0.2; exit 4"));
  ASSERT_TRUE(controller.work_until([&] { return !starts().empty(); }, Seconds{10}));
  agent_.kill();
  os::sleep_for(Seconds{0.5});
  agent_.start();
  ASSERT_TRUE(controller.work_until([&] { return controller.is_over(job); }, Seconds{10}));
  EXPECT_EQ(controller.job(job).exit_status, 4);
}

TEST_F(AgentProgramTest, EndsWhatASupervisorLeavesThatWasKilled) {
  for (const bool has_cgroups : {true, false}) {
    TestController controller(options());
    agent_.start(has_cgroups ? std::vector<std::string>{}
                             : std::vector<std::string>{"--no-cgroups"});
    const std::size_t before = starts().size();
    const auto job = controller.submit(noting("setsid sleep 60 & sleep 60"));
    ASSERT_TRUE(controller.work_until([&] { return starts().size() > before; }, Seconds{10}));
    const std::string run = folder_.path() + "/state/runs/" + std::to_string(job) + ".1.0";
    const auto supervisor = RunLock::holder(run);
    ASSERT_TRUE(supervisor && *supervisor);
    ASSERT_EQ(::kill(**supervisor, SIGKILL), 0);
    // A fault of the node: the controller begins another attempt.
    EXPECT_TRUE(controller.work_until([&] { return starts().size() > before + 1; }, Seconds{10}));
    EXPECT_THAT(processes_with_variable("REGATTA_RUN=" + run), IsEmpty());
    controller.cancel(job);
    EXPECT_TRUE(controller.work_until([&] { return controller.is_over(job); }, Seconds{10}));
    EXPECT_TRUE(agent_.end().is_success());
    ASSERT_TRUE(os::remove_tree(folder_.path() + "/state"));
    ASSERT_TRUE(os::remove_tree(starts_));
  }
}

TEST_F(AgentProgramTest, ReportsReplicasOfAnEarlierBootAsFaultsOfTheNode) {
  TestController controller(options());
  agent_.start();
  const auto job = controller.submit(noting("sleep 60"));
  ASSERT_TRUE(controller.work_until([&] { return starts().size() == 1; }, Seconds{10}));
  agent_.kill();
  for (const pid_t pid : processes_with_variable("REGATTA_RUN=" + run_folders().front()))
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ASSERT_TRUE(JournalFile::open(folder_.path() + "/state/journal", "earlier-boot"));
  agent_.start();
  EXPECT_TRUE(controller.work_until([&] { return starts().size() == 2; }, Seconds{10}));
  EXPECT_EQ(controller.job(job).attempts, 2);
  EXPECT_EQ(controller.job(job).failures, 0);
}

// The lease is a second, the shortest that the protocol allows.
TEST_F(AgentProgramTest, EndsTheRanksWhenTheAgentStandsStillBeyondTheLease) {
  TestController controller(options(Seconds{1}));
  agent_.start();
  controller.submit(noting("sleep 60"));
  ASSERT_TRUE(controller.work_until([&] { return !starts().empty(); }, Seconds{10}));
  const std::string run = run_folders().front();
  const Seconds begin = os::monotonic_now();
  ASSERT_TRUE(os::send_signal(agent_.pid(), SIGSTOP));
  ASSERT_TRUE(controller.work_until(
      [&] { return processes_with_variable("REGATTA_RUN=" + run).empty(); }, Seconds{5}));
  EXPECT_LT((os::monotonic_now() - begin).value, 2);
  ASSERT_TRUE(os::send_signal(agent_.pid(), SIGCONT));
  // The controller has another attempt on the node when it hears of it again.
  ASSERT_TRUE(controller.work_until([&] { return starts().size() == 2; }, Seconds{10}));
  for (const auto& [key, count] : starts())
    EXPECT_EQ(count, 1) << key;
}

TEST_F(AgentProgramTest, EndsTheRanksWhenTheControllerIsSilentBeyondTheLease) {
  TestController controller(options(Seconds{1}));
  agent_.start();
  controller.submit(noting("sleep 60"));
  ASSERT_TRUE(controller.work_until([&] { return !starts().empty(); }, Seconds{10}));
  const std::string run = run_folders().front();
  controller.set_mute(true);
  EXPECT_TRUE(controller.work_until(
      [&] { return processes_with_variable("REGATTA_RUN=" + run).empty(); }, Seconds{5}));
}

TEST_F(AgentProgramTest, RefusesAStateFolderThatAnotherAgentHas) {
  TestController controller(options());
  agent_.start();
  ASSERT_TRUE(controller.work_until([&] { return controller.is_connected(); }, Seconds{10}));
  AgentProcess second(folder_.path(), node_);
  second.start();
  const auto state = os::wait_for(second.pid(), Seconds{10});
  ASSERT_TRUE(state);
  EXPECT_EQ(state->status, 1);
}

TEST_F(AgentProgramTest, EnrollsItselfAndRenewsItsCertificate) {
  TestWebController controller(Seconds{4}, Seconds{0.1});
  agent_.start_with(controller.url(), {"--token", controller.token()});
  const auto wait_for = [](const auto& is_done) {
    for (int i = 0; i < 1000 && !is_done(); ++i)
      os::sleep_for(Seconds{0.01});
    return is_done();
  };
  ASSERT_TRUE(wait_for([&] { return controller.heartbeats() >= 3; }));
  ASSERT_TRUE(wait_for([&] { return controller.renewals() == 1; }));
  EXPECT_EQ(controller.enrolled(), 1);
  // Its certificate serves without a token.
  agent_.kill();
  const int hellos = controller.hellos();
  agent_.start_with(controller.url(), {});
  EXPECT_TRUE(wait_for([&] { return controller.hellos() > hellos; }));
  EXPECT_EQ(controller.enrolled(), 1);
}

// REGATTA_AGENT_KILLS: how often; REGATTA_AGENT_SEED: another course of events.
TEST_F(AgentProgramTest, StartsEachAttemptAtMostOnceHoweverOftenItIsKilled) {
  const char* wished = std::getenv("REGATTA_AGENT_KILLS");
  const char* seed = std::getenv("REGATTA_AGENT_SEED");
  const int kills = wished != nullptr ? std::atoi(wished) : 60;
  std::minstd_rand random(seed != nullptr ? static_cast<unsigned>(std::atoi(seed)) : 1U);
  TestController controller(options());
  std::vector<control::JobId> jobs;
  for (int i = 0; i < kills; ++i) {
    if (jobs.size() < static_cast<std::size_t>(controller.count_over()) + 8)
      for (int more = 0; more < 3; ++more)
        jobs.push_back(controller.submit(noting("sleep 0.1; setsid sleep 9 & exit 0")));
    agent_.start();
    if (i % 2 == 0) {
      controller.work_for(Seconds{std::uniform_real_distribution(0.02, 0.2)(random)});
    } else {
      // While the orders of a new connection are carried out.
      const int connections = controller.connections();
      controller.work_until([&] { return controller.connections() > connections; }, Seconds{5});
      controller.work_for(Seconds{std::uniform_real_distribution(0.0, 0.03)(random)});
    }
    agent_.kill();
  }
  agent_.start();
  EXPECT_TRUE(controller.work_until(
      [&] { return controller.count_over() == static_cast<int>(jobs.size()); }, Seconds{60}));
  for (const auto& [key, count] : starts())
    EXPECT_EQ(count, 1) << key;
  for (const control::JobId job : jobs) {
    EXPECT_EQ(controller.job(job).phase, control::JobPhase::kSucceeded) << job;
    const std::string last =
        std::to_string(job) + "." + std::to_string(controller.job(job).attempts);
    EXPECT_EQ(starts()[last + ".0"], 1) << last;
  }
  EXPECT_TRUE(agent_.end().is_success());
  expect_nothing_left();
  std::printf("%d kills, %zu jobs, %zu starts\n", kills, jobs.size(), starts().size());
}

}  // namespace
}  // namespace regatta::node_agent
