#include "regatta/platform/node_agent/internal/supervisor.h"

#include <csignal>

#include <gmock/gmock.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/node_agent/internal/lease_file.h"
#include "regatta/platform/node_agent/internal/process_end.h"
#include "regatta/platform/node_agent/internal/rank_log.h"
#include "regatta/platform/node_agent/internal/run_folder.h"

namespace regatta::node_agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kSecondNs = 1'000'000'000;

// A supervisor that runs a shell script.
class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() { lease_.renew(boottime_ns(), 60 * kSecondNs); }

  ReplicaSpec script(const std::string& text, int ranks = 1) {
    ReplicaSpec spec;
    spec.command = {"/bin/sh", "-c", text};
    spec.environment = {{"PATH", "/usr/bin:/bin"}, {"REGATTA_RUN", run_}};
    spec.ranks = ranks;
    spec.grace_ms = 200;
    return spec;
  }
  void start(const ReplicaSpec& spec) {
    ASSERT_TRUE(os::write_file(spec_path(run_), encode(spec)));
    const auto pid = os::spawn({program_, run_, folder_.path() + "/lease"}, {.environment = {},
                                                                             .open_fds = {},
                                                                             .namespaces = {},
                                                                             .cgroup_procs = {},
                                                                             .working_folder = {}});
    ASSERT_TRUE(pid) << pid.error().message;
    pid_ = *pid;
  }
  ReplicaExit ended() {
    const auto state = os::wait_for(pid_, Seconds{10});
    EXPECT_TRUE(state) << state.error().message;
    const auto exit = read_exit(run_);
    EXPECT_TRUE(exit && *exit);
    EXPECT_THAT(processes_with_variable("REGATTA_RUN=" + run_), IsEmpty());
    return exit && *exit ? **exit : ReplicaExit{};
  }
  ReplicaExit run(const ReplicaSpec& spec) {
    start(spec);
    return ended();
  }
  std::string output(int rank = 0) {
    const auto bytes = read_log(run_, rank, 0, 100'000);
    return bytes ? bytes->data : "";
  }
  void wait_for_output(const std::string& text) {
    for (int i = 0; i < 500 && output().find(text) == std::string::npos; ++i)
      os::sleep_for(Seconds{0.01});
    EXPECT_THAT(output(), HasSubstr(text));
  }

  os::TempFolder folder_ = os::TempFolder::create().value();
  std::string run_ = folder_.path();
  std::string program_ = *os::executable_folder() + "/" + kSupervisorProgram;
  LeaseFile lease_ = LeaseFile::create(run_ + "/lease", "boot", 60 * kSecondNs).value();
  pid_t pid_ = -1;
};

TEST_F(SupervisorTest, RunsEachRankWithItsNumbers) {
  ReplicaSpec spec = script("echo rank $RANK local $LOCAL_RANK $A; echo error >&2", 2);
  spec.first_rank = 4;
  spec.environment.emplace_back("A", "b c");
  EXPECT_EQ(run(spec).exit_status, 0);
  EXPECT_EQ(output(0), "rank 4 local 0 b c\nerror\n");
  EXPECT_EQ(output(1), "rank 5 local 1 b c\nerror\n");
}

TEST_F(SupervisorTest, LetsTheFirstRankThatFailsDecide) {
  const ReplicaExit exit =
      run(script("[ $RANK = 1 ] && exit 7; trap 'exit 9' TERM; sleep 20 & wait", 3));
  EXPECT_EQ(exit.exit_status, 7);
  EXPECT_EQ(exit.signal, 0);
  EXPECT_FALSE(exit.is_node_fault);
  EXPECT_THAT(exit.reason, HasSubstr("rank 1"));
  EXPECT_LT(exit.running_ms, 5000);
}

TEST_F(SupervisorTest, SaysWhichSignalEndedARank) {
  EXPECT_EQ(run(script("kill -SEGV $$")).signal, SIGSEGV);
}

TEST_F(SupervisorTest, SaysWhyACommandCannotBeRun) {
  ReplicaSpec spec = script("");
  spec.command = {"no-such-program"};
  EXPECT_EQ(run(spec).exit_status, 127);
  EXPECT_THAT(output(), HasSubstr("no-such-program: cannot be run"));
}

TEST_F(SupervisorTest, EndsRanksAfterTheGraceWhenTheyIgnoreTheOrderToStop) {
  start(script("trap '' TERM; echo ready; while :; do sleep 0.05; done"));
  wait_for_output("ready");
  ASSERT_EQ(::kill(pid_, SIGTERM), 0);
  const ReplicaExit exit = ended();
  EXPECT_EQ(exit.signal, SIGKILL);
  EXPECT_GE(exit.running_ms, 200);
  EXPECT_FALSE(exit.is_node_fault);
}

TEST_F(SupervisorTest, EndsProcessesThatHaveLeftTheirParentsAndSessions) {
  const ReplicaExit exit =
      run(script("setsid sh -c 'setsid sleep 60 & sleep 0.01' & "
                 "setsid sleep 60 & sleep 0.1; exit 0"));
  EXPECT_EQ(exit.exit_status, 0);
}

TEST_F(SupervisorTest, EndsTheReplicaWhenItsLeaseIsOver) {
  lease_.renew(boottime_ns(), kSecondNs / 3);
  const ReplicaExit exit = run(script("trap '' TERM; sleep 60"));
  EXPECT_TRUE(exit.is_node_fault);
  EXPECT_GE(exit.running_ms, 250);
  EXPECT_LT(exit.running_ms, 5000);
}

TEST_F(SupervisorTest, StartsNothingWithoutALease) {
  lease_.renew(boottime_ns() - 2 * kSecondNs, kSecondNs);
  EXPECT_TRUE(run(script("echo ran")).is_node_fault);
  EXPECT_EQ(output(), "");
}

TEST_F(SupervisorTest, StartsNothingInAFolderThatIsClosed) {
  ASSERT_TRUE(write_durably(exit_path(run_), encode(ReplicaExit{.reason = "closed"})));
  EXPECT_EQ(run(script("echo ran")).reason, "closed");
  EXPECT_EQ(output(), "");
}

TEST_F(SupervisorTest, BoundsTheLogOfARank) {
  ReplicaSpec spec =
      script("i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf '%0100d\\n' $i; done");
  spec.log_bytes_max = 4096;
  EXPECT_EQ(run(spec).exit_status, 0);
  std::int64_t size = 0;
  for (const LogSegment& segment : log_segments(run_, 0))
    size += segment.size;
  EXPECT_LE(size, 2 * 4096);
  EXPECT_THAT(output(), HasSubstr("were dropped before"));
  EXPECT_THAT(output(), HasSubstr("\n"));
}

TEST_F(SupervisorTest, TakesLittleMemory) {
  start(script("echo ready; sleep 60"));
  wait_for_output("ready");
  const std::string status = *os::read_file("/proc/" + std::to_string(pid_) + "/status");
  const std::size_t at = status.find("VmRSS:");
  ASSERT_NE(at, std::string::npos);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LE(std::stol(status.substr(at + 6)), 2048);  // KiB
#endif
  ASSERT_EQ(::kill(pid_, SIGUSR1), 0);
  ended();
}

TEST_F(SupervisorTest, BecomesTheJobsUserWithoutMoreRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ReplicaSpec spec = script("id -u; id -g; id -G; grep NoNewPrivs /proc/self/status");
  spec.user = ProcessUser{.uid = 65534, .gid = 65533, .groups = {65533, 12345}};
  EXPECT_EQ(run(spec).exit_status, 0);
  EXPECT_EQ(output(), "65534\n65533\n65533 12345\nNoNewPrivs:\t1\n");
}

}  // namespace
}  // namespace regatta::node_agent
