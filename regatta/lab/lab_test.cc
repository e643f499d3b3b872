#include "regatta/lab/lab.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/lab/lab_probe_test.h"
#include "regatta/os/clock.h"
#include "regatta/os/file.h"
#include "regatta/os/proc_table.h"
#include "regatta/os/process.h"
#include "regatta/topo/cluster_yaml.h"

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

// A lab for one test, taken down at its end, and by itself when the test is aborted; skips the test
// where namespaces are not allowed.
class Lab : public testing::Test {
 protected:
  void bring_up(const topo::Cluster& cluster) {
    cluster_ = cluster;
    auto lab = up(cluster, {.die_with_caller = true});
    if (!lab && lab.error().code == Code::kUnsupported) GTEST_SKIP() << lab.error().message;
    ASSERT_TRUE(lab) << lab.error().message;
    lab_ = *lab;
  }

  void TearDown() override {
    if (!lab_.name.empty()) {
      EXPECT_TRUE(down(lab_.name));
    }
    for (const pid_t pid : background_)
      EXPECT_TRUE(os::wait_for(pid, Seconds{5}));
  }

  pid_t start(const std::string& node, const std::vector<std::string>& arguments,
              const ExecOptions& options = {}) {
    const auto pid = spawn(lab_, node, arguments, options);
    EXPECT_TRUE(pid) << (pid ? "" : pid.error().message);
    if (!pid) return -1;
    background_.push_back(*pid);
    return *pid;
  }

  void serve(const std::string& node) {
    start(node, {probe_program(), "--probe", "serve", "5000"});
  }

  // What the probe prints; "" when it fails.
  std::string probe(const std::string& node, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {probe_program(), "--probe"});
    auto pipe = os::make_pipe();
    ExecOptions options;
    options.stdout_fd = pipe->write_end.get();
    const auto pid = spawn(lab_, node, arguments, options);
    EXPECT_TRUE(pid) << (pid ? "" : pid.error().message);
    pipe->write_end.reset();
    std::string text;
    char letter = 0;
    while (::read(pipe->read_end.get(), &letter, 1) == 1)
      text += letter;
    return os::wait_for(*pid)->is_success() ? text + "." : "";
  }

  bool can_reach(const std::string& node, const std::string& address) {
    return !probe(node, {"reach", address, "5000"}).empty();
  }

  std::string address(std::size_t server) const { return lab_.servers[server].nic_addresses[0]; }

  double seconds_to_send(const std::string& from, std::size_t to, int bytes, int connections = 1) {
    const std::string text = probe(
        from, {"send", address(to), "5000", std::to_string(bytes), std::to_string(connections)});
    return text.empty() ? -1 : std::atof(text.c_str());
  }

  std::map<std::string, LinkState> links() const {
    std::map<std::string, LinkState> found;
    const auto states = link_states(lab_);
    EXPECT_TRUE(states);
    if (states) {
      for (const LinkState& state : *states)
        found[state.name] = state;
    }
    return found;
  }

  std::vector<LabProcess> inside() const {
    const auto found = processes(lab_);
    EXPECT_TRUE(found);
    return found ? *found : std::vector<LabProcess>();
  }

  topo::Cluster cluster_;
  LabInfo lab_;
  std::vector<pid_t> background_;
};

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

TEST_F(Lab, ShapesALinkToItsRate) {
  bring_up(test_cluster("rate", 2, 2, 0));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  constexpr int kBytes = 4 << 20;
  double best = 1e9;  // a busy machine can only make it slower
  for (int i = 0; i < 3; ++i)
    best = std::min(best, seconds_to_send("s0", 1, kBytes));
  EXPECT_NEAR(kBytes * 8 / best / 1e6, 100, 15);
}

TEST_F(Lab, SpreadsConnectionsOverBothUplinks) {
  bring_up(test_cluster("ecmp", 2, 1, 2));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  ASSERT_GT(seconds_to_send("s0", 1, 64 * 16384, 64), 0);
  auto state = links();
  const auto first = static_cast<double>(state["leaf0-spine0"].sent_by_a.value);
  const auto second = static_cast<double>(state["leaf0-spine1"].sent_by_a.value);
  EXPECT_GT(first / (first + second), 0.2);
  EXPECT_LT(first / (first + second), 0.8);
}

// With one hash key in all switches a spine sees only flows that the leaf's hash sent there, and
// its own hash then sends them all to one super-spine.
TEST_F(Lab, IsNotPolarisedOverThreeTiers) {
  if (!exists("/proc/sys/net/ipv4/fib_multipath_hash_seed")) {
    GTEST_SKIP() << "this kernel has no hash seed per namespace";
  }
  std::string text = test_cluster_text(fmt::format("test-{}-tiers", ::getpid()), 2, 1, 2);
  const std::string two = "leaf, spine]\n";
  text.replace(text.find(two), two.size(),
               "leaf, spine, super-spine]\n  leaves_per_group: 1\n  super_spines: 4\n");
  const auto cluster = topo::parse_cluster(text, "test.yaml");
  ASSERT_TRUE(cluster) << cluster.error().message;
  bring_up(*cluster);
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  EXPECT_GT(std::atoi(probe("s0", {"echo", address(1), "5000", "400"}).c_str()), 380);
  auto state = links();
  for (const auto& [spine, supers] : std::map<std::string, std::vector<std::string>>{
           {"spine0", {"super0", "super1"}}, {"spine1", {"super2", "super3"}}}) {
    const auto a = static_cast<double>(state[spine + "-" + supers[0]].sent_by_a.value);
    const auto b = static_cast<double>(state[spine + "-" + supers[1]].sent_by_a.value);
    EXPECT_GT(a / (a + b), 0.3) << spine;
    EXPECT_LT(a / (a + b), 0.7) << spine;
  }
}

TEST_F(Lab, LosesALinkAndGetsItBack) {
  bring_up(test_cluster("down", 4, 2, 2));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  for (const std::string link : {"s0.nic0-leaf0", "leaf0-spine0"}) {
    ASSERT_TRUE(inject(lab_, {FaultKind::kLinkDown, link, {}, 0}));
    EXPECT_FALSE(links()[link].up);
    EXPECT_TRUE(links()[link].has_fault);
  }
  EXPECT_FALSE(can_reach("s0", address(1)));
  ASSERT_TRUE(clear(lab_, "s0.nic0-leaf0"));
  EXPECT_TRUE(can_reach("s0", address(1)));
  EXPECT_FALSE(links()["leaf0-spine0"].up);
  ASSERT_TRUE(clear(lab_, ""));
  EXPECT_TRUE(links()["leaf0-spine0"].up);
  serve("s3");
  for (int i = 0; i < 8; ++i)
    EXPECT_TRUE(can_reach("s0", address(3)));  // also over spine0
}

TEST_F(Lab, SlowsALinkAndRestoresIt) {
  bring_up(test_cluster("slow", 2, 2, 0));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkSlow, "s1.nic0-leaf0", BytesPerSecond{1.25e6}, 0}));
  EXPECT_DOUBLE_EQ(links()["s1.nic0-leaf0"].rate.value, 1.25e6);
  constexpr int kBytes = 1 << 20;
  EXPECT_GT(seconds_to_send("s0", 1, kBytes), 0.75);  // 0.84 s at 10 Mbit/s
  ASSERT_TRUE(clear(lab_, "s1.nic0-leaf0"));
  EXPECT_LT(seconds_to_send("s0", 1, kBytes), 0.4);  // 0.084 s at 100 Mbit/s
}

TEST_F(Lab, DropsAShareOfThePackets) {
  bring_up(test_cluster("drop", 2, 2, 0));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  const auto echoes = [&] {
    return std::atoi(probe("s0", {"echo", address(1), "5000", "400"}).c_str());
  };
  EXPECT_GT(echoes(), 395);
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkDrop, "s0.nic0-leaf0", {}, 0.3}));
  EXPECT_NEAR(echoes(), 400 * 0.7 * 0.7, 50);  // there and back; 50 is five deviations
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkDrop, "s0.nic0-leaf0", {}, 1.0}));
  EXPECT_EQ(echoes(), 0);
  EXPECT_DOUBLE_EQ(links()["s0.nic0-leaf0"].drop_share, 1.0);
  EXPECT_TRUE(links()["s0.nic0-leaf0"].up);
  ASSERT_TRUE(clear(lab_, "s0.nic0-leaf0"));
  EXPECT_GT(echoes(), 395);
}

TEST_F(Lab, StopsAndContinuesAServer) {
  bring_up(test_cluster("stop", 2, 2, 0));
  if (IsSkipped()) return;
  start("s0", {"sleep", "60"});
  start("s1", {"sleep", "60"});
  ASSERT_TRUE(inject(lab_, {FaultKind::kServerStop, "s1", {}, 0}));
  std::map<std::string, bool> stopped;
  for (const LabProcess& process : inside())
    stopped[process.node] = process.stopped;
  EXPECT_FALSE(stopped["s0"]);
  EXPECT_TRUE(stopped["s1"]);
  ASSERT_TRUE(clear(lab_, "s1"));
  for (const LabProcess& process : inside())
    EXPECT_FALSE(process.stopped);
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
