// RDMA between the ranks of a world. Needs devices (REGATTA_TEST_RDMA): tests/guest has some.
#include "regatta/runtime/comm/internal/transport/verbs.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/test_ranks.h"
#include "regatta/runtime/comm/test_status.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

using testing::HasSubstr;

TEST(Rdma, IsRefusedWhereTheAddressHasNoDevice) {
  const auto device = open_verbs("192.0.2.1");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, Code::kUnsupported);
  const auto errors = run_ranks(
      TestLayout::kTcp, 1, [](Communicator&) {},
      [](int, CommunicatorOptions& options) { options.rdma = Rdma::kRequired; });
  ASSERT_TRUE(errors[0]);
  EXPECT_EQ(errors[0]->code, Code::kUnsupported);
  EXPECT_THAT(errors[0]->message, HasSubstr("rank 0: "));
}

// With devices.
class RdmaWorld : public testing::Test {
 protected:
  void SetUp() override {
    if (rdma_addresses().empty()) GTEST_SKIP() << "REGATTA_TEST_RDMA names no RDMA devices";
  }
};

std::vector<std::uint8_t> bytes_of(std::size_t count, std::size_t seed) {
  std::vector<std::uint8_t> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>((i * 131 + seed * 17) >> 3);
  return bytes;
}

TEST_F(RdmaWorld, MessagesOfAllSizesComeWholeAndBothWays) {
  run_all(TestLayout::kRdma, 2, [](Communicator& world) {
    const std::size_t mine = world.rank().index();
    const Rank peer{world.rank().value == 0 ? 1 : 0};
    for (const std::size_t count : {0UL, 1UL, 4096UL, 32768UL, 32769UL, 65536UL, 65537UL, 1000001UL,
                                    (1UL << 20) + 64, 16UL << 20}) {
      const auto out = bytes_of(count, mine);
      std::vector<std::uint8_t> in(count);
      Handle receive = world.recv(in.data(), count, DataType::kU8, peer);
      Handle send = world.send(out.data(), count, DataType::kU8, peer);
      expect_ok(receive.wait());
      expect_ok(send.wait());
      EXPECT_TRUE(in == bytes_of(count, 1 - mine)) << count;
    }
    EXPECT_GT(traffic_of(world).network_bytes[peer.index()], 18 << 20);
  });
}

TEST_F(RdmaWorld, MemoryThatCameToLieAtTheSameAddressIsAnother) {
  run_all(TestLayout::kRdma, 2, [](Communicator& world) {
    constexpr std::size_t kBytes = 3 << 20;
    for (std::size_t round = 0; round < 6; ++round) {
      // Large enough to be mapped and unmapped: it comes again at the same address.
      auto data =
          world.rank().value == 0 ? bytes_of(kBytes, round) : std::vector<std::uint8_t>(kBytes);
      expect_ok(world.broadcast(data.data(), kBytes, DataType::kU8, Rank{0}).wait());
      EXPECT_TRUE(data == bytes_of(kBytes, round)) << round;
    }
  });
}

TEST_F(RdmaWorld, ManySmallMessagesWaitForCreditAndAllCome) {
  run_all(TestLayout::kRdma, 2, [](Communicator& world) {
    constexpr int kMessages = 1000;
    const Rank peer{world.rank().value == 0 ? 1 : 0};
    std::vector<std::vector<std::int32_t>> in(kMessages, std::vector<std::int32_t>(100));
    std::vector<std::vector<std::int32_t>> out;
    for (int i = 0; i < kMessages; ++i)
      out.emplace_back(100, i);
    std::vector<Handle> handles;
    for (std::size_t i = 0; i < kMessages; ++i) {
      handles.push_back(world.send(out[i].data(), 100, DataType::kI32, peer));
      handles.push_back(world.recv(in[i].data(), 100, DataType::kI32, peer));
    }
    for (Handle& handle : handles)
      expect_ok(handle.wait());
    EXPECT_TRUE(in == out);
  });
}

TEST_F(RdmaWorld, RanksThatMayChooseUseTcpWithOneThatTurnedRdmaOff) {
  run_all(
      TestLayout::kRdma, 3,
      [](Communicator& world) {
        std::vector<float> data(100000, 1.0F);
        expect_ok(
            world.all_reduce(data.data(), data.data(), data.size(), DataType::kF32, ReduceOp::kSum)
                .wait());
        EXPECT_EQ(data, std::vector<float>(100000, 3.0F));
      },
      [](int rank, CommunicatorOptions& options) {
        options.rdma = rank == 1 ? Rdma::kOff : Rdma::kAutomatic;
      });
}

TEST_F(RdmaWorld, ARankThatRequiresItNamesOneThatTurnedItOff) {
  const auto errors = run_ranks(
      TestLayout::kRdma, 2, [](Communicator&) {},
      [](int rank, CommunicatorOptions& options) {
        options.peer_timeout = Seconds{0.5};
        options.rdma = rank == 1 ? Rdma::kOff : Rdma::kRequired;
      });
  ASSERT_TRUE(errors[0]);
  EXPECT_THAT(errors[0]->message, HasSubstr("rank 1 at s1 offers no RDMA at its address"));
}

// The UDP source ports of the RoCEv2 packets that pass any interface of this machine.
class PortListener {
 public:
  PortListener() : fd_(socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, htons(ETH_P_IP))) {}
  bool is_open() const { return static_cast<bool>(fd_); }

  std::set<std::uint16_t> ports() const {
    constexpr std::uint16_t kRocePort = 4791;
    std::set<std::uint16_t> found;
    struct {
      iphdr ip;
      udphdr udp;
    } head{};
    while (recv(fd_.get(), &head, sizeof head, 0) > 0)
      if (head.ip.ihl == 5 && head.ip.protocol == IPPROTO_UDP && ntohs(head.udp.dest) == kRocePort)
        found.insert(ntohs(head.udp.source));
    return found;
  }

 private:
  os::UniqueFd fd_;
};

TEST_F(RdmaWorld, QueuePairsSendFromPortsOfTheirOwn) {
  const PortListener listener;
  if (!listener.is_open()) GTEST_SKIP() << "only root sees the packets of an interface";
  constexpr int kQueuePairs = 6;
  run_all(
      TestLayout::kRdma, 2,
      [](Communicator& world) {
        std::vector<std::uint8_t> data(std::size_t{4} << 20);
        expect_ok(world.broadcast(data.data(), data.size(), DataType::kU8, Rank{0}).wait());
      },
      [](int, CommunicatorOptions& options) { options.connections = kQueuePairs; });
  const auto ports = listener.ports();
  // Data one way, acknowledgements the other: both ends chose.
  EXPECT_GE(ports.size(), std::size_t{kQueuePairs});
  EXPECT_LE(ports.size(), std::size_t{2 * kQueuePairs});
  for (const std::uint16_t port : ports)
    EXPECT_GT(port, 0xC000);
}

// For the record: no bar, the guest is emulated.
TEST_F(RdmaWorld, RateOfLargeMessagesIsToldBesideThatOfTcp) {
  for (const Rdma rdma : {Rdma::kRequired, Rdma::kOff}) {
    std::atomic<double> seconds = 0;
    constexpr std::size_t kBytes = 4 << 20;
    constexpr int kRounds = 4;
    run_all(
        TestLayout::kRdma, 2,
        [&](Communicator& world) {
          std::vector<std::uint8_t> data(kBytes, 1);
          const auto once = [&] {
            return world.rank().value == 0
                       ? world.send(data.data(), kBytes, DataType::kU8, Rank{1}).wait()
                       : world.recv(data.data(), kBytes, DataType::kU8, Rank{0}).wait();
          };
          expect_ok(once());
          expect_ok(world.barrier().wait());
          const Seconds before = os::monotonic_now();
          for (int i = 0; i < kRounds; ++i)
            expect_ok(once());
          expect_ok(world.barrier().wait());
          if (world.rank().value == 0) seconds = (os::monotonic_now() - before).value;
        },
        [&](int, CommunicatorOptions& options) { options.rdma = rdma; });
    const BytesPerSecond rate{kBytes * kRounds / seconds.load()};
    std::printf("messages of 4 MiB, %s: %s\n", rdma == Rdma::kOff ? "TCP" : "RDMA",
                format_bytes_per_second(rate).c_str());
  }
}

}  // namespace
}  // namespace regatta::comm
