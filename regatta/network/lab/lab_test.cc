#include "regatta/network/lab/lab.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/network/lab/internal/lab_fixture_test.h"
#include "regatta/network/lab/internal/lab_probe_test.h"

namespace regatta::lab {
namespace {

using testing::HasSubstr;

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// A process that has ended may stay listed until its parent looks at it.
bool is_running(pid_t pid) {
  const auto entry = os::read_process(pid);
  return entry && entry->state != 'Z';
}

TEST_F(Lab, ConnectsAllPairsOverLeavesAndSpines) {
  bring_up(test_cluster("pairs", 4, 2, 2));
  if (IsSkipped()) return;
  for (const LabServer& server : lab_.servers)
    serve(server.name);
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) {
      if (from != to) {
        EXPECT_TRUE(can_reach(lab_.servers[from].name, address(to)));
      }
    }
  }
  const auto counters = link_counters(lab_, cluster_);
  ASSERT_TRUE(counters) << counters.error().message;
  ASSERT_EQ(counters->size(), 16U);
  EXPECT_GT((*counters)[0].bytes.value, 0);
  EXPECT_FALSE((*counters)[1].link.forward);
}

TEST_F(Lab, LeavesNothingBehind) {
  bring_up(test_cluster("clean", 2, 2, 0));
  if (IsSkipped()) return;
  const LabInfo lab = lab_;
  const pid_t pid = start("s1", {"sleep", "60"});
  EXPECT_TRUE(exists(lab.folder));
  if (!lab.servers[0].devices[0].cgroup.empty()) {
    EXPECT_TRUE(exists(lab.servers[0].devices[0].cgroup));
  }
  EXPECT_THAT(list(), testing::Contains(testing::Field(&LabInfo::name, lab.name)));
  const auto found = inside();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().pid, pid);
  EXPECT_EQ(found.front().node, "s1");
  EXPECT_EQ(found.front().command, "sleep");

  ASSERT_TRUE(down(lab.name));
  lab_ = {};
  EXPECT_EQ(os::wait_for(pid, Seconds{1})->signal, SIGTERM);
  background_.clear();
  EXPECT_FALSE(exists(lab.folder));
  EXPECT_FALSE(is_running(lab.holder));
  if (lab.fixed_speed) {
    EXPECT_FALSE(exists(lab.servers[0].devices[0].cgroup));
  }
  EXPECT_EQ(down(lab.name).error().code, Code::kNotFound);
  EXPECT_EQ(find(lab.name).error().code, Code::kNotFound);
  EXPECT_EQ(spawn(lab, "s0", {"true"}, {}).error().code, Code::kUnavailable);
  EXPECT_EQ(link_states(lab).error().code, Code::kUnavailable);
}

TEST_F(Lab, OfTheSameNameIsAConflict) {
  bring_up(test_cluster("twice", 2, 2, 0));
  if (IsSkipped()) return;
  const auto second = up(cluster_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("regatta lab down " + lab_.name));
  EXPECT_TRUE(find(lab_.name));
}

TEST_F(Lab, IsToldFromTheLabOfAnotherDescription) {
  bring_up(test_cluster("same", 2, 2, 0));
  if (IsSkipped()) return;
  EXPECT_TRUE(check_same_cluster(lab_, cluster_));
  const topo::Cluster other = test_cluster("same", 3, 3, 0);
  EXPECT_EQ(check_same_cluster(lab_, other).error().code, Code::kConflict);
  EXPECT_EQ(link_counters(lab_, other).error().code, Code::kConflict);
}

TEST_F(Lab, OfEightServersAndSixSwitchesIsUpInTwoSeconds) {
  bring_up(test_cluster("large", 8, 2, 2));
  if (IsSkipped()) return;
  EXPECT_EQ(links().size(), 16U);
  EXPECT_LT(lab_.up_seconds, 2.0);
  RecordProperty("up_ms", static_cast<int>(lab_.up_seconds * 1e3));
}

TEST_F(Lab, StopsAndContinuesAServer) {
  bring_up(test_cluster("stop", 2, 2, 0));
  if (IsSkipped()) return;
  start("s0", {"sleep", "60"});
  start("s1", {"sleep", "60"});
  ASSERT_TRUE(inject(lab_, {FaultKind::kServerStop, "s1", {}, 0}));
  // A signal takes a moment to arrive.
  const auto become = [this](const std::map<std::string, bool>& expected) {
    std::map<std::string, bool> stopped;
    const Seconds end = os::monotonic_now() + Seconds{2};
    while (stopped != expected && os::monotonic_now() < end) {
      for (const LabProcess& process : inside())
        stopped[process.node] = process.stopped;
      os::sleep_for(Seconds{0.005});
    }
    return stopped == expected;
  };
  EXPECT_TRUE(become({{"s0", false}, {"s1", true}}));
  ASSERT_TRUE(clear(lab_, "s1"));
  EXPECT_TRUE(become({{"s0", false}, {"s1", false}}));
  ASSERT_TRUE(inject(lab_, {FaultKind::kServerStop, "s1", {}, 0}));  // down() ends it all the same
}

TEST_F(Lab, KillsAServerThatCanStartAnew) {
  bring_up(test_cluster("kill", 2, 2, 0));
  if (IsSkipped()) return;
  const pid_t pid = start("s1", {"sleep", "60"});
  ASSERT_TRUE(inject(lab_, {FaultKind::kServerKill, "s1", {}, 0}));
  EXPECT_EQ(os::wait_for(pid, Seconds{5})->signal, SIGKILL);
  background_.clear();
  serve("s1");
  EXPECT_TRUE(can_reach("s0", address(1)));
}

TEST_F(Lab, NamesWhatExistsWhenAFaultHasNoTarget) {
  bring_up(test_cluster("names", 2, 2, 0));
  if (IsSkipped()) return;
  const auto link = inject(lab_, {FaultKind::kLinkDown, "s9.nic0-leaf0", {}, 0});
  EXPECT_EQ(link.error().code, Code::kNotFound);
  EXPECT_THAT(link.error().message, HasSubstr("s0.nic0-leaf0, s1.nic0-leaf0"));
  const auto server = inject(lab_, {FaultKind::kServerStop, "s9", {}, 0});
  EXPECT_EQ(server.error().code, Code::kNotFound);
  EXPECT_THAT(server.error().message, HasSubstr("s0, s1"));
  EXPECT_EQ(spawn(lab_, "s9", {"true"}, {}).error().code, Code::kNotFound);
  EXPECT_EQ(clear(lab_, "s9").error().code, Code::kNotFound);
  EXPECT_EQ(inject(lab_, {FaultKind::kLinkSlow, "s0.nic0-leaf0", {}, 0}).error().code,
            Code::kInvalidInput);
  EXPECT_EQ(inject(lab_, {FaultKind::kLinkDrop, "s0.nic0-leaf0", {}, 2}).error().code,
            Code::kInvalidInput);
}

TEST_F(Lab, WhoseHolderIsKilledIsReapedByTheNextUp) {
  bring_up(test_cluster("reap", 2, 2, 0));
  if (IsSkipped()) return;
  const pid_t orphan = start("s0", {"sleep", "60"});
  ASSERT_TRUE(os::send_signal(lab_.holder, SIGKILL));
  for (int i = 0; i < 200 && is_running(lab_.holder); ++i)
    os::sleep_for(Seconds{0.01});
  EXPECT_EQ(spawn(lab_, "s0", {"true"}, {}).error().code, Code::kUnavailable);
  const auto again = up(cluster_, {.die_with_caller = true});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(os::wait_for(orphan, Seconds{1})->signal, SIGTERM);
  background_.clear();
  EXPECT_TRUE(processes(*again)->empty());
  EXPECT_NE(again->holder, lab_.holder);
  lab_ = *again;
  serve("s1");
  EXPECT_TRUE(can_reach("s0", address(1)));
}

TEST_F(Lab, EndsWithTheProcessThatAskedForIt) {
  bring_up(test_cluster("caller", 2, 2, 0));  // only to skip where labs are not possible
  if (IsSkipped()) return;
  auto pipe = os::make_pipe();
  os::SpawnOptions options;
  options.stdout_fd = pipe->write_end.get();
  const auto caller = os::spawn({probe_program(), "--probe", "hold", "held"}, options);
  ASSERT_TRUE(caller);
  pipe->write_end.reset();
  char answer[8] = {};
  ASSERT_GT(::read(pipe->read_end.get(), answer, sizeof answer - 1), 0);
  ASSERT_STREQ(answer, "up\n");
  const auto lab = find(fmt::format("test-{}-held", *caller));
  ASSERT_TRUE(lab) << lab.error().message;
  const auto sleeper = spawn(*lab, "s0", {"sleep", "60"}, {});
  ASSERT_TRUE(sleeper);
  ASSERT_TRUE(os::send_signal(*caller, SIGKILL));
  ASSERT_TRUE(os::wait_for(*caller));
  EXPECT_EQ(os::wait_for(*sleeper, Seconds{5})->signal, SIGTERM);
  for (int i = 0; i < 200 && exists(lab->folder); ++i)
    os::sleep_for(Seconds{0.02});
  EXPECT_FALSE(exists(lab->folder));
  if (lab->fixed_speed) {
    EXPECT_FALSE(exists(lab->servers[0].devices[0].cgroup));
  }
}

// An ordinary user gets the same lab inside a user namespace.
TEST(LabOfAnOrdinaryUser, WorksInAUserNamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "the other tests run as an ordinary user already";
  auto folder = os::TempFolder::create();
  ASSERT_TRUE(folder);
  ASSERT_EQ(::chmod(folder->path().c_str(), 0755), 0);
  const std::string program = folder->path() + "/lab_test";
  std::filesystem::copy_file(probe_program(), program);
  const std::string run = folder->path() + "/run";
  ASSERT_TRUE(os::make_folder(run, 0700));
  ASSERT_EQ(::chown(run.c_str(), 65534, 65534), 0);
  auto pipe = os::make_pipe();
  os::SpawnOptions options;
  options.stdout_fd = pipe->write_end.get();
  options.environment = {"XDG_RUNTIME_DIR=" + run};
  const auto pid = os::spawn({"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                              program, "--probe", "scenario"},
                             options);
  if (!pid) GTEST_SKIP() << pid.error().message;
  pipe->write_end.reset();
  std::string text;
  char letter = 0;
  while (::read(pipe->read_end.get(), &letter, 1) == 1)
    text += letter;
  const auto state = os::wait_for(*pid, Seconds{30});
  ASSERT_TRUE(state);
  if (state->status == 77) GTEST_SKIP() << text;
  EXPECT_EQ(state->status, 0) << text;
  EXPECT_EQ(text, "user namespace\n");
}

}  // namespace
}  // namespace regatta::lab
