// Packets over RDMA devices. REGATTA_TEST_RDMA names the addresses of two; without it only what is
// said where there is none is tested.
#include "regatta/network/probe/internal/rdma_port.h"

#include <array>
#include <atomic>
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

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/probe/prober.h"
#include "regatta/network/rdma/datagrams.h"
#include "regatta/network/rdma/device.h"
#include "regatta/network/rdma/wire.h"

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
      const std::uint32_t next = next_queue(i);
      ports_[i] = {rdma::udp_port_of_queue(next + 20), rdma::udp_port_of_queue(next + 31)};
      open(i, {ports_[i][0], ports_[i][1]});
    }
  }

  // Soft-RoCE gives the next queue pairs their ports by such numbers: to choose among them saves
  // making thousands in an emulated machine.
  std::uint32_t next_queue(std::size_t i) {
    const auto device = rdma::Device::open(topo::address_text(address_[i]));
    EXPECT_TRUE(device) << device.error().message;
    const auto datagrams = rdma::Datagrams::create(**device);
    EXPECT_TRUE(datagrams) << datagrams.error().message;
    return (*datagrams)->number();
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

TEST_F(RdmaPorts, CarryPacketsBothPathsWithTheirPorts) {
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

// A whole prober that sends by one device and answers by the other.
TEST_F(RdmaPorts, CarryAWholeProber) {
  port_ = {};
  const std::uint16_t port = rdma::udp_port_of_queue(60 + std::max(next_queue(0), next_queue(1)));
  Matrix matrix;
  for (std::size_t from = 0; from < 2; ++from)
    matrix.probes.push_back({LinkId{static_cast<int>(from)},
                             LinkId{static_cast<int>(1 - from)},
                             {.from = address_[from],
                              .to = address_[1 - from],
                              .from_port = port,
                              .to_port = kRdmaPort}});
  const ServerPart part{.server = NodeId{0}, .sends = {0, 1}, .answers = {0, 1}};
  auto prober = Prober::open(matrix, part, {.period = {0.05}, .transport = Transport::kRdma});
  ASSERT_TRUE(prober) << prober.error().message;
  std::atomic<bool> stop = false;
  int good = 0;
  std::vector<std::string> wrong;
  const Seconds begin = os::monotonic_now();
  EXPECT_TRUE(prober->run(stop, [&](const std::string& line) -> Status {
    const auto parsed = parse_line(line, part, 3);
    if (!parsed) wrong.push_back(line);
    const auto* const report = parsed ? std::get_if<diag::ProbeReport>(&*parsed) : nullptr;
    if (report != nullptr && report->sent[0].answered == 3 && report->sent[1].answered == 3 &&
        report->arrived[0].arrived == 3 && report->arrived[1].arrived == 3)
      ++good;
    if (parsed && report == nullptr && line != "l\n") wrong.push_back(line);
    stop = good >= 10 || os::monotonic_now() - begin > Seconds{40};
    return {};
  }));
  EXPECT_GE(good, 10);
  EXPECT_THAT(wrong, testing::IsEmpty());
}

// The UDP source port, which switches hash, is the requested one.
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
