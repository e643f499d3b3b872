// Two flows of ranks under two uplinks of an emulated cluster: the source ports that coll chooses
// (comm/internal/transport/path_discovery.h) must fill both. Plain ECMP puts both flows'
// connections on one of them every other time. The rate of each try is printed:
//   bench_test --gtest_filter='SourcePorts.*' --gtest_repeat=20
#include <cstddef>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/bench/test_lab_ranks.h"

namespace regatta::bench {
namespace {

constexpr double kUplinksBytesPerSecond = 25e6;  // both together
constexpr std::size_t kFlowBytes = 12'500'000;   // 1 s for two flows

class SourcePorts : public LabRanks {
 protected:
  SourcePorts() : LabRanks(two_leaves("uplinks", 2, 2, 200)) {}
};

TEST_F(SourcePorts, FillBothUplinksWithTwoFlows) {
  Seconds taken;
  const auto body = [&](comm::Communicator& world) {
    std::vector<char> data(kFlowBytes, 1);
    const int rank = world.rank().value;
    ASSERT_TRUE(world.barrier().wait());
    const Seconds start = os::monotonic_now();
    auto flow = rank < 2
                    ? world.send(data.data(), data.size(), comm::DataType::kU8, Rank{rank + 2})
                    : world.recv(data.data(), data.size(), comm::DataType::kU8, Rank{rank - 2});
    ASSERT_TRUE(flow.wait());
    ASSERT_TRUE(world.barrier().wait());
    if (rank == 0) taken = os::monotonic_now() - start;
  };
  run_ranks(body, [](comm::CommunicatorOptions& options) { options.connections = 2; });
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
