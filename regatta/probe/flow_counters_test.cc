#include "regatta/probe/flow_counters.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/os/clock.h"
#include "regatta/os/unique_fd.h"

namespace regatta::probe {
namespace {

// A connection to itself over loopback.
struct Pair {
  os::UniqueFd client;
  os::UniqueFd server;
  Connection name;  // as the client has it
};

Pair connected() {
  Pair pair;
  const os::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
  pair.client = os::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(pair.client.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  pair.server = os::UniqueFd(::accept(listener.get(), nullptr, nullptr));
  pair.name.remote = {.address = {127, 0, 0, 1}, .port = ntohs(address.sin_port)};
  ::getsockname(pair.client.get(), reinterpret_cast<sockaddr*>(&address), &size);
  pair.name.local = {.address = {127, 0, 0, 1}, .port = ntohs(address.sin_port)};
  return pair;
}

void send(const Pair& pair, std::size_t bytes) {
  const std::vector<char> text(bytes, 'x');
  EXPECT_EQ(::write(pair.client.get(), text.data(), bytes), static_cast<ssize_t>(bytes));
  std::vector<char> got(bytes);
  EXPECT_EQ(::recv(pair.server.get(), got.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
}

std::optional<ConnectionCounters> client_of(FlowCounters& counters, const Pair& pair) {
  const auto all = counters.read();
  EXPECT_TRUE(all) << all.error().message;
  for (const ConnectionCounters& one : **all)
    if (one.connection == pair.name) return one;
  return std::nullopt;
}

TEST(FlowCounters, CountsWhatAConnectionSends) {
  auto counters = FlowCounters::open();
  ASSERT_TRUE(counters) << counters.error().message;
  const Pair pair = connected();
  send(pair, 1000);
  const auto first = client_of(*counters, pair);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->sent_bytes, 1000u);
  send(pair, 50000);
  const auto second = client_of(*counters, pair);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->sent_bytes, 51000u);
  EXPECT_EQ(second->cookie, first->cookie);
  EXPECT_EQ(second->received_bytes, 0u);
}

TEST(FlowCounters, SeesTheSameBytesAtBothEnds) {
  auto counters = FlowCounters::open();
  ASSERT_TRUE(counters);
  const Pair pair = connected();
  send(pair, 1234);
  const auto client = client_of(*counters, pair);
  ASSERT_TRUE(client);
  const auto all = counters->read();
  ASSERT_TRUE(all);
  const auto server = std::ranges::find_if(**all, [&](const ConnectionCounters& one) {
    return one.connection == reversed(client->connection);
  });
  ASSERT_NE(server, (**all).end());
  EXPECT_EQ(server->received_bytes, 1234u);
  EXPECT_EQ(server->sent_bytes, 0u);
}

TEST(FlowCounters, FindsAConnectionThatIsMadeLaterAndForgetsOneThatEnded) {
  auto counters = FlowCounters::open({.look_for_new = {0.02}});
  ASSERT_TRUE(counters);
  ASSERT_TRUE(counters->read());
  std::optional<Pair> pair = connected();
  os::sleep_for(Seconds{0.03});
  EXPECT_TRUE(client_of(*counters, *pair));
  EXPECT_TRUE(is_loopback(pair->name));
  const Pair gone{os::UniqueFd(), os::UniqueFd(), pair->name};
  pair.reset();
  EXPECT_FALSE(client_of(*counters, gone));
}

TEST(FlowCounters, FindsTheSocketAmongTheDescriptorsOfItsProcess) {
  auto counters = FlowCounters::open();
  ASSERT_TRUE(counters);
  const Pair pair = connected();
  const auto client = client_of(*counters, pair);
  ASSERT_TRUE(client);
  EXPECT_THAT(sockets_of(::getpid()), testing::Contains(client->inode));
  EXPECT_TRUE(sockets_of(-1).empty());
}

TEST(FlowCounters, CountsEachOfManyConnections) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 100; ++i)
    pairs.push_back(connected());
  auto counters = FlowCounters::open();
  ASSERT_TRUE(counters);
  ASSERT_TRUE(counters->read());
  for (std::size_t i = 0; i < pairs.size(); ++i)
    send(pairs[i], 100 + i);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto client = client_of(*counters, pairs[i]);
    ASSERT_TRUE(client);
    EXPECT_EQ(client->sent_bytes, 100 + i);
  }
}

TEST(FlowCounters, AsksQuietConnectionsRarelyAndAllAgainWhenOneWakes) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 10; ++i)
    pairs.push_back(connected());
  auto counters =
      FlowCounters::open({.look_for_new = {60}, .quiet_after = {0.2}, .quiet_share = 5});
  ASSERT_TRUE(counters);
  // How many of the ends of the pairs the next call asks.
  const auto asked = [&] {
    const Seconds now = os::monotonic_now();
    const auto all = counters->read();
    EXPECT_TRUE(all);
    return std::ranges::count_if(**all, [&](const ConnectionCounters& one) {
      return one.at >= now && std::ranges::any_of(pairs, [&](const Pair& pair) {
               return pair.name == one.connection || reversed(pair.name) == one.connection;
             });
    });
  };
  EXPECT_EQ(asked(), 20);
  EXPECT_EQ(asked(), 20);
  os::sleep_for(Seconds{0.3});
  std::ptrdiff_t in_turn = 0;
  for (int i = 0; i < 5; ++i)
    in_turn += asked();
  EXPECT_EQ(in_turn, 20);
  send(pairs[3], 1000);
  for (int i = 0; i < 5; ++i)
    static_cast<void>(asked());
  EXPECT_EQ(asked(), 20);
  EXPECT_EQ(client_of(*counters, pairs[3])->sent_bytes, 1000u);
}

TEST(EndpointText, WritesBothKindsOfAddresses) {
  Endpoint endpoint{.address = {10, 0, 0, 1}, .port = 80};
  EXPECT_EQ(endpoint_text(endpoint, false), "10.0.0.1:80");
  endpoint.address = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  EXPECT_EQ(endpoint_text(endpoint, true), "[fd00::1]:80");
  endpoint.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
  EXPECT_EQ(endpoint_text(endpoint, true), "10.0.0.1:80");
}

}  // namespace
}  // namespace regatta::probe
