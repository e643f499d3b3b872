#include "regatta/network/probe/flow_counters.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

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

std::vector<Pair> connected_pairs(std::size_t count) {
  std::vector<Pair> pairs(count);
  std::ranges::generate(pairs, connected);
  return pairs;
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
  os::sleep_for(Seconds{0.03});
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
  const std::vector<Pair> pairs = connected_pairs(100);
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
  const std::vector<Pair> pairs = connected_pairs(10);
  // Those of other programs may wake at any time.
  const auto is_foreign = [&](const Connection& one) {
    return std::ranges::none_of(
        pairs, [&](const Pair& pair) { return pair.name == one || reversed(pair.name) == one; });
  };
  auto counters = FlowCounters::open({.look_for_new = {60},
                                      .quiet_after = {0.2},
                                      .quiet_share = 5,
                                      .asks_interfaces = false,
                                      .is_left_out = is_foreign});
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

// Drivers that read their hardware once a second tell nothing of what moves meanwhile.
TEST(FlowCounters, TrustNoInterfaceThatTellsTooLate) {
  const Pair pair = connected();
  auto counters = FlowCounters::open({.look_for_new = {0.05}, .interface_pace = {30}});
  ASSERT_TRUE(counters) << counters.error().message;
  const Seconds begin = os::monotonic_now();
  while (os::monotonic_now() - begin < Seconds{0.5}) {
    send(pair, 100'000);
    ASSERT_TRUE(counters->read());
    os::sleep_for(Seconds{0.005});
  }
  // Between two dumps.
  int told = 0;
  for (int i = 0; i < 20; ++i) {
    const std::uint64_t before = client_of(*counters, pair)->sent_bytes;
    send(pair, 100'000);
    if (client_of(*counters, pair)->sent_bytes == before + 100'000) ++told;
  }
  EXPECT_EQ(told, 20);
}

// A network of this process alone, where it may have one. On the loopback of the machine the
// packets of other programs are more than those of a still connection.
struct QuietNetwork {
  QuietNetwork() {
    if (!os::enter_new_network_namespace() && !os::enter_new_user_namespace()) return;
    const os::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq loopback{};
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP;
    EXPECT_EQ(::ioctl(socket.get(), SIOCSIFFLAGS, &loopback), 0);
  }
};

// Ten pairs that have been still for a moment. Where there is no quiet network, others use the
// interfaces too, so what is asked is the least of several tries.
class StillConnections : public testing::Test {
 protected:
  void SetUp() override {
    auto counters = FlowCounters::open({.look_for_new = {60}});
    ASSERT_TRUE(counters) << counters.error().message;
    counters_.emplace(std::move(*counters));
    ASSERT_TRUE(counters_->read());
    os::sleep_for(Seconds{0.1});
  }
  // Questions that one look takes after `change`.
  template <typename Change>
  std::uint64_t least_asked(Change&& change) {
    std::uint64_t least = ~0ULL;
    for (int i = 0; i < 20; ++i) {
      change();
      const std::uint64_t before = counters_->asked();
      EXPECT_TRUE(counters_->read());
      least = std::min(least, counters_->asked() - before);
      os::sleep_for(Seconds{0.005});
    }
    return least;
  }
  std::uint64_t sent_by(const Pair& pair) {
    const auto client = client_of(*counters_, pair);
    return client ? client->sent_bytes : 0;
  }

  QuietNetwork network_;
  std::vector<Pair> pairs_ = connected_pairs(10);
  std::optional<FlowCounters> counters_;
};

TEST_F(StillConnections, AreNotAsked) {
  EXPECT_EQ(least_asked([] {}), 0U);
  const Seconds now = os::monotonic_now();
  const auto all = counters_->read();
  ASSERT_TRUE(all);
  for (const ConnectionCounters& one : **all)
    EXPECT_GE(one.at, now);
}

TEST_F(StillConnections, AreLeftOutWhereOthersAccountForWhatMoved) {
  // Its two ends.
  EXPECT_LE(least_asked([this] { send(pairs_[3], 200'000); }), 4U);
  EXPECT_EQ(sent_by(pairs_[3]), 20U * 200'000);
}

TEST_F(StillConnections, AreAskedAtOnceWhenTheyMove) {
  for (const std::uint32_t pair : {4U, 7U, 1U}) {
    os::sleep_for(Seconds{0.1});
    ASSERT_TRUE(counters_->read());
    send(pairs_[pair], 100'000);
    EXPECT_EQ(sent_by(pairs_[pair]), 100'000U);
    // Beside one that is at work.
    const std::size_t other = pair + 1;
    send(pairs_[pair], 100'000);
    send(pairs_[other], 100'000);
    EXPECT_EQ(sent_by(pairs_[other]), 100'000U);
    EXPECT_EQ(sent_by(pairs_[pair]), 200'000U);
  }
}

TEST_F(StillConnections, TellTheLittleThatTheyMovedLater) {
  send(pairs_[2], 100);
  for (int i = 0; i < 6; ++i)
    ASSERT_TRUE(counters_->read());
  send(pairs_[6], 100'000);
  EXPECT_EQ(sent_by(pairs_[2]), 100U);
}

// No look finds more than a little that an earlier one might have found.
TEST_F(StillConnections, TellSlowTrafficBeforeItIsMuch) {
  std::uint64_t sent = 0;
  for (int i = 0; i < 100; ++i) {
    send(pairs_[2], 1000);
    sent += 1000;
    const std::uint64_t told = sent_by(pairs_[2]);
    EXPECT_LE(sent - told, 16384U) << "after " << sent;
  }
}

// Each end leaves out what the other counts.
TEST(FlowCounters, CountEachConnectionAtOneEndWhereBothAreWatched) {
  const std::vector<Pair> pairs = connected_pairs(10);
  const auto is_left_out = [](const Connection& one) { return !is_counted_here(one); };
  auto counters = FlowCounters::open({.look_for_new = {60}, .is_left_out = is_left_out});
  ASSERT_TRUE(counters);
  ASSERT_TRUE(counters->read());
  for (const Pair& pair : pairs)
    send(pair, 10'000);
  const auto all = counters->read();
  ASSERT_TRUE(all);
  int told = 0;
  for (const Pair& pair : pairs) {
    EXPECT_NE(is_counted_here(pair.name), is_counted_here(reversed(pair.name)));
    for (const ConnectionCounters& one : **all) {
      const bool is_client = one.connection == pair.name;
      if (!is_client && one.connection != reversed(pair.name)) continue;
      const std::uint64_t bytes = is_client ? one.sent_bytes : one.received_bytes;
      EXPECT_EQ(bytes, is_counted_here(one.connection) ? 10'000U : 0U);
      ++told;
    }
  }
  EXPECT_EQ(told, 20);
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
