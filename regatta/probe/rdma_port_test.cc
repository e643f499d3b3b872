// Packets over RDMA devices. REGATTA_TEST_RDMA names the addresses of two; without it only what is
// said where there is none is tested.
#include "regatta/probe/internal/rdma_port.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "regatta/core/text.h"
#include "regatta/os/clock.h"
#include "regatta/rdma/datagrams.h"
#include "regatta/rdma/device.h"
#include "regatta/rdma/wire.h"
#include "regatta/topo/addresses.h"

namespace regatta::probe {
namespace {

using testing::HasSubstr;

TEST(RdmaPort, SaysWhereThereIsNoDevice) {
  const auto port = RdmaPort::open({0xC0000201}, {0xC123});  // 192.0.2.1
  ASSERT_FALSE(port);
  EXPECT_EQ(port.error().code, Code::kUnsupported);
  EXPECT_THAT(port.error().message,
              testing::AnyOf(HasSubstr("no active RoCEv2 port of this machine has the address "
                                       "192.0.2.1"),
                             HasSubstr("this build has no RDMA")));
}

class RdmaPorts : public testing::Test {
 protected:
  void SetUp() override {
    const char* const names = std::getenv("REGATTA_TEST_RDMA");
    if (names == nullptr) GTEST_SKIP() << "REGATTA_TEST_RDMA names no RDMA devices";
    const auto both = split(names, ',');
    ASSERT_EQ(both.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) {
      in_addr address{};
      ASSERT_EQ(::inet_pton(AF_INET, both[i].c_str(), &address), 1);
      address_[i] = ::ntohl(address.s_addr);
      choose_ports(i, both[i]);
      open(i, {ports_[i][0], ports_[i][1]});
    }
  }

  // Soft-RoCE gives its next queue pairs these, which saves making thousands in an emulated
  // machine.
  void choose_ports(std::size_t i, const std::string& address) {
    const auto device = rdma::Device::open(address);
    ASSERT_TRUE(device) << device.error().message;
    const auto datagrams = rdma::Datagrams::create(**device);
    ASSERT_TRUE(datagrams) << datagrams.error().message;
    ports_[i] = {rdma::udp_port_of_queue((*datagrams)->number() + 20),
                 rdma::udp_port_of_queue((*datagrams)->number() + 31)};
  }

  void open(std::size_t i, const std::set<std::uint16_t>& ports) {
    port_[i].reset();
    auto port = RdmaPort::open({address_[i]}, ports);
    ASSERT_TRUE(port) << port.error().message;
    port_[i] = std::move(*port);
  }

  void send(std::size_t from, std::int64_t round, std::size_t port = 0) {
    const Packet packet{.local = address_[from],
                        .remote = address_[1 - from],
                        .local_port = ports_[from][port],
                        .remote_port = 4791,
                        .payload = {.magic = kProbeMagic, .probe = 7, .round = round}};
    port_[from]->send(std::span(&packet, 1), static_cast<std::int64_t>(os::monotonic_ns()));
  }

  // Sends until some come; those.
  std::vector<Packet> exchange(std::size_t from, std::int64_t round) {
    const Seconds until = os::monotonic_now() + Seconds{20};
    std::vector<Packet> came;
    std::vector<Packet> back;
    while (came.empty() && os::monotonic_now() < until) {
      send(from, round);
      os::sleep_for(Seconds{0.01});
      port_[1 - from]->receive(came);
      port_[from]->receive(back);
    }
    return came;
  }

  std::array<std::uint32_t, 2> address_{};
  std::array<std::array<std::uint16_t, 2>, 2> ports_{};
  std::array<std::unique_ptr<RdmaPort>, 2> port_;
};

TEST_F(RdmaPorts, CarryPacketsBothWaysWithTheirPorts) {
  for (const std::size_t from : {0U, 1U}) {
    const auto came = exchange(from, 99);
    ASSERT_FALSE(came.empty());
    EXPECT_EQ(came[0].remote, address_[from]);
    EXPECT_EQ(came[0].local, address_[1 - from]);
    EXPECT_EQ(came[0].remote_port, ports_[from][0]);
    EXPECT_EQ(came[0].payload.magic, kProbeMagic);
    EXPECT_EQ(came[0].payload.probe, 7U);
    EXPECT_EQ(came[0].payload.round, 99);
  }
}

TEST_F(RdmaPorts, LoseNothingOfAFullRound) {
  ASSERT_FALSE(exchange(0, 1).empty());
  for (int i = 0; i < 200; ++i)
    send(0, 2);
  std::vector<Packet> came;
  for (int i = 0;
       i < 200 &&
       std::ranges::count(came, 2, [](const Packet& one) { return one.payload.round; }) < 200;
       ++i) {
    os::sleep_for(Seconds{0.02});
    port_[1]->receive(came);
  }
  EXPECT_EQ(std::ranges::count(came, 2, [](const Packet& one) { return one.payload.round; }), 200);
}

TEST_F(RdmaPorts, FindAPeerThatStartedAgain) {
  ASSERT_FALSE(exchange(0, 1).empty());
  open(1, {});  // another queue pair
  EXPECT_FALSE(exchange(0, 2).empty());
}

// What switches hash is what was asked for.
TEST_F(RdmaPorts, LeaveFromTheUdpPortThatWasChosen) {
  ASSERT_FALSE(exchange(0, 1).empty());
  const os::UniqueFd wire(
      ::socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, ::htons(ETH_P_ALL)));
  if (!wire) GTEST_SKIP() << "may not look at the wire";
  int seen = 0;
  for (int i = 0; i < 500 && seen < 4; ++i) {
    const std::size_t port = static_cast<std::size_t>(i) % 2;
    send(0, 3, port);
    os::sleep_for(Seconds{0.01});
    std::vector<Packet> came;
    port_[1]->receive(came);
    std::array<char, 4096> block{};
    for (ssize_t count = 0; (count = ::recv(wire.get(), block.data(), block.size(), 0)) > 0;) {
      iphdr ip{};
      udphdr udp{};
      if (count < static_cast<ssize_t>(sizeof ip + sizeof udp)) continue;
      std::memcpy(&ip, block.data(), sizeof ip);
      std::memcpy(&udp, block.data() + std::size_t{4} * ip.ihl, sizeof udp);
      if (ip.version != 4 || ip.protocol != IPPROTO_UDP || udp.dest != ::htons(4791)) continue;
      if (::ntohl(ip.saddr) != address_[0]) continue;
      EXPECT_EQ(::ntohs(udp.source), ports_[0][port]);
      EXPECT_EQ(ip.tos, topo::kProbeTos);
      ++seen;
    }
  }
  EXPECT_GE(seen, 4);
}

}  // namespace
}  // namespace regatta::probe
