// Two flows of ranks under two uplinks of an emulated cluster: the source ports that coll chooses
// (coll/transport/survey.h) must fill both. Plain ECMP puts both flows' connections on one of them
// every other time. The rate of each try is printed:
//   bench_test --gtest_filter='SourcePorts.*' --gtest_repeat=20
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/coll/test_ranks.h"
#include "regatta/coll/test_world.h"
#include "regatta/lab/lab.h"
#include "regatta/os/clock.h"
#include "regatta/os/namespace.h"
#include "regatta/os/process.h"
#include "regatta/topo/cluster_yaml.h"

namespace regatta::bench {
namespace {

constexpr double kUplinksBytesPerSecond = 25e6;  // both together
constexpr std::size_t kFlowBytes = 12'500'000;   // 1 s for two flows

topo::Cluster two_uplinks() {
  const auto cluster = topo::parse_cluster(fmt::format(R"(name: test-{}-uplinks
server_types:
  cpu-1:
    devices: {{count: 1, type: cpu, cpu_share: 5%}}
    intra: {{kind: shm}}
    nics: {{count: 1, rate: 200Mbps}}
fabric:
  tiers: [leaf, spine]
  servers_per_leaf: 2
  spines: 2
  uplink: 100Mbps
servers: {{count: 4, type: cpu-1}}
)",
                                                       ::getpid()),
                                           "test.yaml");
  EXPECT_TRUE(cluster) << cluster.error().message;
  return *cluster;
}

// The lab, and a process in each server whose namespace the threads of the test enter.
class SourcePorts : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/sys/net/ipv4/fib_multipath_hash_fields"))
      GTEST_SKIP() << "switches of this kernel cannot hash ports alone (Linux 5.14 can)";
    const topo::Cluster cluster = two_uplinks();
    auto lab = lab::up(cluster, {.die_with_caller = true});
    if (!lab && lab.error().code == Code::kUnsupported) GTEST_SKIP() << lab.error().message;
    ASSERT_TRUE(lab) << lab.error().message;
    lab_ = *lab;
    for (const lab::LabServer& server : lab_.servers) {
      const auto pid = lab::spawn(lab_, server.name, {"sleep", "60"}, {});
      ASSERT_TRUE(pid) << pid.error().message;
      inside_.push_back(*pid);
      spaces_.emplace_back(
          open(fmt::format("/proc/{}/ns/net", *pid).c_str(), O_RDONLY | O_CLOEXEC));
    }
    const auto scope = os::NetworkNamespaceScope::enter(spaces_[0]);
    if (!scope) GTEST_SKIP() << scope.error().message;
  }

  void TearDown() override {
    if (!lab_.name.empty()) {
      EXPECT_TRUE(lab::down(lab_.name));
    }
    for (const pid_t pid : inside_)
      EXPECT_TRUE(os::wait_for(pid, Seconds{5}));
  }

  // Rank r in server r runs `body`.
  void run_ranks(int connections, const std::function<void(coll::Communicator&)>& body) {
    coll::run_all(coll::Layout::kTcp, static_cast<int>(spaces_.size()), body,
                  [&](int rank, coll::Options& options) {
                    const auto index = static_cast<std::size_t>(rank);
                    // On the rank's own thread: sockets belong to the namespace where they
                    // were made.
                    const Status inside = os::enter_network_namespace(spaces_[index]);
                    ASSERT_TRUE(inside) << inside.error().message;
                    options.listen_address = lab_.servers[index].nic_addresses[0];
                    options.connections = connections;
                  });
  }

  double sent_over(const std::string& link) const {
    const auto states = lab::link_states(lab_);
    EXPECT_TRUE(states) << states.error().message;
    if (!states) return 0;
    for (const lab::LinkState& state : *states)
      if (state.name == link) return static_cast<double>(state.sent_by_a.value);
    return 0;
  }

  lab::LabInfo lab_;
  std::vector<pid_t> inside_;
  std::vector<os::UniqueFd> spaces_;
};

TEST_F(SourcePorts, FillBothUplinksWithTwoFlows) {
  Seconds taken;
  run_ranks(2, [&](coll::Communicator& world) {
    std::vector<char> data(kFlowBytes, 1);
    const int rank = world.rank().value;
    ASSERT_TRUE(world.barrier().wait());
    const Seconds start = os::monotonic_now();
    auto flow = rank < 2
                    ? world.send(data.data(), data.size(), coll::DataType::kU8, Rank{rank + 2})
                    : world.recv(data.data(), data.size(), coll::DataType::kU8, Rank{rank - 2});
    ASSERT_TRUE(flow.wait());
    ASSERT_TRUE(world.barrier().wait());
    if (rank == 0) taken = os::monotonic_now() - start;
  });
  const double first = sent_over("leaf0-spine0");
  const double second = sent_over("leaf0-spine1");
  const double share = first / (first + second);
  const double bound_s = 2 * kFlowBytes / kUplinksBytesPerSecond;
  fmt::print("{:.1f} % over one uplink; {:.1f} % of the sum of both\n", 100 * share,
             100 * bound_s / taken.value);
  EXPECT_NEAR(share, 0.5, 0.1);
}

}  // namespace
}  // namespace regatta::bench
