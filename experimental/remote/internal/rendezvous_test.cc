// How connections begin; with RDMA where REGATTA_TEST_RDMA names two devices (tests/guest).
#include "experimental/remote/internal/rendezvous.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experimental/remote/internal/rdma_packet_port.h"
#include "experimental/remote/internal/socket.h"
#include "regatta/base/core/text.h"

namespace regatta::remote {
namespace {

using testing::HasSubstr;

const rdma::QueueCard kCard{
    .gid = {1, 2, 3}, .mtu = 4096, .slots = kPortReceives, .numbers = {0xabcdef}};

TEST(Transport, HasThreeNames) {
  EXPECT_EQ(*parse_transport(""), TransportChoice::kAuto);
  EXPECT_EQ(*parse_transport("auto"), TransportChoice::kAuto);
  EXPECT_EQ(*parse_transport("tcp"), TransportChoice::kTcp);
  EXPECT_EQ(*parse_transport("rdma"), TransportChoice::kRdma);
  EXPECT_EQ(parse_transport("udp").error().message, "udp: is no transport; use auto, tcp or rdma");
}

TEST(CardText, ComesBackAsItWas) {
  const auto card = parse_queue_card(format_queue_card(kCard));
  ASSERT_TRUE(card);
  EXPECT_EQ(card->gid, kCard.gid);
  EXPECT_EQ(card->numbers, kCard.numbers);
}

TEST(CardText, RefusesWhatIsNone) {
  const std::string good = format_queue_card(kCard);
  ASSERT_LE(good.size(), kCardTextMax);
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parse_queue_card(good.substr(0, length))) << length;
  EXPECT_FALSE(parse_queue_card(good + "00"));
  EXPECT_FALSE(parse_queue_card(std::string(kCardTextMax + 2, '0')));
  std::mt19937 random(5);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string wrong = good;
    wrong[i] = "gG -/:@`"[random() % 8];
    EXPECT_FALSE(parse_queue_card(wrong)) << wrong;
  }
}

TEST(RendezvousReply, ComesBackAsItWas) {
  for (const RendezvousReply& one : {RendezvousReply{}, RendezvousReply{.why_tcp = "no device"},
                                     RendezvousReply{.card = "00ff"}}) {
    const auto again = parse_rendezvous_reply(format_rendezvous_reply(one));
    ASSERT_TRUE(again);
    EXPECT_EQ(again->card, one.card);
    EXPECT_EQ(again->why_tcp, one.why_tcp);
  }
  for (const char* const wrong : {"", "join", "joined ", "tcp", "tcp ", "rdma", "rdma ", "Rdma 00"})
    EXPECT_FALSE(parse_rendezvous_reply(wrong)) << wrong;
}

// A server that passes what it is asked on to a host process, in a thread.
class RendezvousTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = listen_tcp("127.0.0.1:0");
    ASSERT_TRUE(listener);
    listener_ = std::move(*listener);
    sockaddr_in address{};
    socklen_t size = sizeof address;
    ASSERT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    options_.server = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    options_.is_plain = true;
    server_ = std::thread([this] { serve(); });
  }
  void TearDown() override {
    ::shutdown(listener_.get(), SHUT_RDWR);
    cut();
    server_.join();
  }

  // Interrupts the connection that is served, whatever it waits for.
  void cut() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    if (served_) ::shutdown(served_.get(), SHUT_RDWR);
  }
  bool note(const os::UniqueFd& fd) {
    const std::lock_guard lock(mutex_);
    served_.reset(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
    return !is_over_;
  }

  // Gives back all that it gets, a connection after the other.
  void serve() {
    for (;;) {
      os::UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
      if (!fd || !note(fd)) return;
      serve_one(std::move(fd));
      const std::lock_guard lock(mutex_);
      served_.reset();
    }
  }
  void serve_one(os::UniqueFd fd) {
    const auto asked = receive_text(fd.get());
    if (!asked) return;
    const auto request = nlohmann::json::parse(*asked);
    const auto channel =
        accept_program(std::move(fd), "", request.value("rdma", spoilt_offer_), server_address_);
    if (!channel) return;
    std::string bytes(100'000, '\0');
    for (std::size_t came = 0; (came = channel->receive(bytes.data(), bytes.size())) > 0;)
      if (!channel->send({bytes.data(), came}, {})) break;
  }

  static void expect_echo(ByteChannel& channel, std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i)
      text[i] = static_cast<char>(i * 131 >> 3);
    std::thread sender([&] { EXPECT_TRUE(channel.send("front", text)); });
    std::string back(5 + bytes, '\0');
    EXPECT_TRUE(BufferedReader(channel).read(back.data(), back.size()));
    sender.join();
    EXPECT_TRUE(back == "front" + text);
  }

  os::UniqueFd listener_;
  ConnectOptions options_{.ticket = "t", .key = "k"};
  std::string server_address_;
  std::string spoilt_offer_;
  std::thread server_;

  std::mutex mutex_;
  bool is_over_ = false;  // guarded by mutex_
  os::UniqueFd served_;   // guarded by mutex_: a copy of the connection
};

TEST_F(RendezvousTest, TakesTcpWhereThereIsNoDevice) {
  std::uint64_t next = 7;
  auto joined = connect_to_host(options_, next);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_FALSE(joined->is_rdma);
  EXPECT_THAT(joined->how, HasSubstr("TCP: "));
  EXPECT_EQ(joined->number, 7U);
  EXPECT_EQ(next, 8U);
  expect_echo(*joined->channel, 1'000'000);
}

TEST_F(RendezvousTest, SaysNothingOfRdmaWhereNobodyAskedForIt) {
  options_.transport = TransportChoice::kTcp;
  std::uint64_t next = 1;
  auto joined = connect_to_host(options_, next);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_EQ(joined->how, "TCP");
  expect_echo(*joined->channel, 1000);
}

TEST_F(RendezvousTest, RefusesRdmaThatThisEndHasNotInOneSentence) {
  options_.transport = TransportChoice::kRdma;
  std::uint64_t next = 1;
  const auto joined = connect_to_host(options_, next);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, Code::kUnsupported);
  EXPECT_EQ(joined.error().message.find('\n'), std::string::npos);
}

TEST_F(RendezvousTest, AnswersABrokenOfferWithTcp) {
  spoilt_offer_ = "it is no card";
  options_.transport = TransportChoice::kTcp;  // the server takes the offer for the program's
  std::uint64_t next = 1;
  auto joined = connect_to_host(options_, next);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_THAT(joined->how, HasSubstr(options_.server + ": "));
  expect_echo(*joined->channel, 1000);
}

// Over devices.
class RdmaRendezvousTest : public RendezvousTest {
 protected:
  void SetUp() override {
    const char* const named = std::getenv("REGATTA_TEST_RDMA");
    if (named == nullptr) GTEST_SKIP() << "REGATTA_TEST_RDMA names no RDMA devices";
    const auto addresses = split(named, ',');
    options_.rdma_address = addresses.at(0);
    server_address_ = addresses.at(1);
    RendezvousTest::SetUp();
  }
  void TearDown() override {
    if (server_.joinable()) RendezvousTest::TearDown();
  }
};

TEST_F(RdmaRendezvousTest, CarriesBytesOfAnyLengthBothWays) {
  std::uint64_t next = 1;
  auto joined = connect_to_host(options_, next);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_TRUE(joined->is_rdma) << joined->how;
  EXPECT_THAT(joined->how, HasSubstr("RDMA by rxe"));
  for (const std::size_t bytes : {1UL, 32'768UL, 32'769UL, 1'000'001UL, 8UL << 20})
    expect_echo(*joined->channel, bytes);
}

TEST_F(RdmaRendezvousTest, TakesTcpWhereTheServerHasNoDeviceAtItsAddress) {
  server_address_ = "127.0.0.1";
  std::uint64_t next = 1;
  auto joined = connect_to_host(options_, next);
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_THAT(joined->how, HasSubstr("no active RoCEv2 port"));
  expect_echo(*joined->channel, 1000);
  joined->channel->close();
  options_.transport = TransportChoice::kRdma;
  EXPECT_EQ(connect_to_host(options_, next).error().code, Code::kUnsupported);
}

TEST_F(RdmaRendezvousTest, ServesTheNextConnectionWhenOneEnds) {
  std::uint64_t next = 1;
  auto joined = connect_to_host(options_, next);
  ASSERT_TRUE(joined) << joined.error().message;
  expect_echo(*joined->channel, 1000);
  joined->channel.reset();
  auto again = connect_to_host(options_, next);
  ASSERT_TRUE(again) << again.error().message;
  expect_echo(*again->channel, 1000);
}

// Descriptors of RDMA devices that this process has open.
int count_device_descriptors() {
  int count = 0;
  for (const auto& one : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string file = std::filesystem::read_symlink(one, error).string();
    count += static_cast<int>(file.find("uverbs") != std::string::npos ||
                              file.find("infinibandevent") != std::string::npos);
  }
  return count;
}

TEST_F(RdmaRendezvousTest, LeavesNoDeviceOpenInAChildOfFork) {
  const auto older = open_rdma(options_.rdma_address);
  ASSERT_TRUE(older) << older.error().message;
  const auto newer = open_rdma(server_address_);
  ASSERT_TRUE(newer) << newer.error().message;
  ASSERT_NE((*older)->device(), (*newer)->device());
  EXPECT_GE(count_device_descriptors(), 4);
  const pid_t child = ::fork();
  if (child == 0) {
    leave_rdma();
    for (const RdmaPacketPort* port : {older->get(), newer->get()})
      static_cast<void>(::close(port->fd()));
    ::_exit(count_device_descriptors());
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace regatta::remote
