// bench/test_lab_ranks.h: ranks of coll in the servers of a lab, as threads of a test.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/process.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/network/lab/lab.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::bench {

// Two leaves of `servers_per_leaf` servers with a NIC of `nic_mbps`, and `spines` uplinks of 100
// Mbit/s each.
inline topo::Cluster two_leaves(const std::string& name, int servers_per_leaf, int spines,
                                int nic_mbps) {
  const auto cluster = topo::parse_cluster(
      fmt::format(R"(name: test-{}-{}
server_types:
  cpu-1:
    devices: {{count: 1, type: cpu, cpu_share: 5%}}
    intra: {{kind: shm}}
    nics: {{count: 1, rate: {}Mbps}}
fabric:
  tiers: [leaf, spine]
  servers_per_leaf: {}
  spines: {}
  uplink: 100Mbps
servers: {{count: {}, type: cpu-1}}
)",
                  ::getpid(), name, nic_mbps, servers_per_leaf, spines, 2 * servers_per_leaf),
      "test.yaml");
  EXPECT_TRUE(cluster) << cluster.error().message;
  return *cluster;
}

// The lab, and a process in each server whose namespace the threads of the test enter.
class LabRanks : public testing::Test {
 protected:
  explicit LabRanks(topo::Cluster cluster) : cluster_(std::move(cluster)) {}

  void SetUp() override {
    if (!std::filesystem::exists("/proc/sys/net/ipv4/fib_multipath_hash_fields"))
      GTEST_SKIP() << "switches of this kernel cannot hash ports alone (Linux 5.14 can)";
    auto lab = lab::up(cluster_, {.die_with_caller = true});
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

  // Rank r, in server r or server_of_[r], runs `body`, with options that `set` may change.
  void run_ranks(const std::function<void(comm::Communicator&)>& body,
                 const std::function<void(comm::CommunicatorOptions&)>& set) {
    comm::run_all(comm::TestLayout::kTcp, static_cast<int>(spaces_.size()), body,
                  [&](int rank, comm::CommunicatorOptions& options) {
                    const std::size_t index =
                        server_of_.empty() ? static_cast<std::size_t>(rank) : at(server_of_, rank);
                    // On the rank's own thread: sockets belong to the namespace where they
                    // were made.
                    const Status inside = os::enter_network_namespace(spaces_[index]);
                    ASSERT_TRUE(inside) << inside.error().message;
                    options.listen_address = lab_.servers[index].nic_addresses[0];
                    set(options);
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

  const topo::Cluster cluster_;
  std::vector<std::size_t> server_of_;  // by rank; empty: its own number
  lab::LabInfo lab_;
  std::vector<pid_t> inside_;
  std::vector<os::UniqueFd> spaces_;
};

}  // namespace regatta::bench
