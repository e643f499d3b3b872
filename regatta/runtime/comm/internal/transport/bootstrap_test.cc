#include "regatta/runtime/comm/internal/transport/bootstrap.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/handshake.h"
#include "regatta/runtime/comm/internal/transport/socket.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::comm {
namespace {

// Calls the rank at `endpoint`, says `bytes` and returns the connection.
os::UniqueFd call(const std::string& endpoint, const std::vector<std::byte>& bytes) {
  const auto to = parse_endpoint(endpoint);
  auto fd = connect_tcp({.address = "127.0.0.1"}, {to->address, to->port});
  pollfd ready{fd->get(), POLLOUT, 0};
  poll(&ready, 1, 1000);
  EXPECT_EQ(send(fd->get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  return std::move(*fd);
}

bool is_closed_by_peer(const os::UniqueFd& fd) {
  pollfd ready{fd.get(), POLLIN, 0};
  poll(&ready, 1, 2000);
  char byte = 0;
  return recv(fd.get(), &byte, 1, 0) <= 0;
}

TEST(Bootstrap, RefusesStrangersAndLosesNothing) {
  for (const TestLayout layout : {TestLayout::kTcp, TestLayout::kShm}) {
    LocalExchange exchange(3);
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int rank = 0; rank < 3; ++rank)
      threads.emplace_back([&, rank] {
        std::vector<os::UniqueFd> strangers;
        const auto with_strangers =
            [&](const std::string& mine) -> Result<std::vector<std::string>> {
          REGATTA_TRY(texts, exchange.of(rank)(mine));
          const RankHandshake handshake{
              .rank = 2, .world_size = 3, .connection = 0, .connections = 3, .token = "test"};
          if (rank != 2) return texts;
          RankHandshake wrong_token = handshake;
          wrong_token.token = "guess";
          RankHandshake wrong_world = handshake;
          wrong_world.world_size = 4;
          RankHandshake wrong_rank = handshake;
          wrong_rank.rank = 0;
          for (const RankHandshake& wrong : {wrong_token, wrong_world, wrong_rank})
            strangers.push_back(call(texts[0], encode_handshake(wrong)));
          strangers.push_back(call(texts[0], std::vector<std::byte>(64, std::byte{'x'})));
          strangers.push_back(call(texts[0], {std::byte{1}}));  // says nothing more
          return texts;
        };
        auto world =
            Communicator::connect(Rank{rank}, 3, with_strangers, test_options(layout, rank));
        ASSERT_TRUE(world) << world.error().message;
        int sum = rank;
        EXPECT_TRUE(world->all_reduce(&sum, &sum, 1, DataType::kI32, ReduceOp::kSum).wait());
        EXPECT_EQ(sum, 3);
        for (const os::UniqueFd& stranger : strangers)
          EXPECT_TRUE(is_closed_by_peer(stranger));
      });
    for (std::thread& thread : threads)
      thread.join();
  }
}

// A connection to one of the listeners that sends `bytes` and nothing more.
struct Stranger {
  std::vector<std::byte> bytes;
  bool is_shared = false;
  std::string refusal;  // what the log says about it
};

std::vector<Stranger> all_strangers() {
  const RankHandshake right{
      .rank = 2, .world_size = 3, .connection = 0, .connections = 3, .token = "test"};
  const auto with = [&](auto change) {
    RankHandshake handshake = right;
    change(handshake);
    return encode_handshake(handshake);
  };
  std::vector<std::byte> old_version = encode_handshake(right);
  old_version[8] = std::byte{1};
  std::vector<std::byte> long_token = encode_handshake(right);
  long_token[38] = std::byte{1};
  const std::vector<std::byte> garbage(300, std::byte{0xa5});
  const std::vector<std::byte> whole = encode_handshake(right);
  const std::vector<std::byte> half(whole.begin(), whole.begin() + 20);
  const std::string web = "GET / HTTP/1.1\r\nHost: regatta\r\n\r\n";
  const auto* web_bytes = reinterpret_cast<const std::byte*>(web.data());
  return {
      {garbage, false, "it does not speak this protocol"},
      {{web_bytes, web_bytes + web.size()}, false, "it does not speak this protocol"},
      {old_version, false, "it speaks another version of this protocol"},
      {long_token, false, "its job token is too long"},
      {half, false, "it closed the connection before it showed a job token"},
      {with([](RankHandshake& h) { h.token = "guess"; }), false, "its job token is wrong"},
      {with([](RankHandshake& h) { h.token = ""; }), false, "its job token is wrong"},
      {with([](RankHandshake& h) { h.world_size = 4; }), false, "it counts 4 ranks, not 3"},
      {with([](RankHandshake& h) { h.rank = 0; }), false, "rank 0 does not connect to this rank"},
      {with([](RankHandshake& h) { h.rank = 3; }), false, "rank 3 does not connect to this rank"},
      {with([](RankHandshake& h) { h.connections = 1; }), false,
       "it wants RDMA where this rank wants TCP"},
      {with([](RankHandshake& h) { h.rendezvous_id = 9; }), false,
       "it belongs to another rendezvous of these ranks"},
      {with([](RankHandshake& h) { h.connections = 1U << 30; }), false,
       "its connection count is wrong"},
      {with([](RankHandshake& h) { h.connection = 77; }), false, "its connection count is wrong"},
      {with([](RankHandshake& h) { h.connections = 0; }), false,
       "it connected to the wrong listener"},
      {whole, true, "it connected to the wrong listener"},
      {garbage, true, "it does not speak this protocol"},
  };
}

os::UniqueFd call_as(const Stranger& stranger, const std::string& endpoint) {
  if (!stranger.is_shared) return call(endpoint, stranger.bytes);
  auto fd = connect_unix(parse_endpoint(endpoint)->unix_name);
  EXPECT_EQ(send(fd->get(), stranger.bytes.data(), stranger.bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(stranger.bytes.size()));
  return std::move(*fd);
}

TEST(Bootstrap, RefusesEveryWrongPeerWithALogLineAndGoesOn) {
  testing::internal::CaptureStderr();
  const std::vector<Stranger> strangers = all_strangers();
  LocalExchange exchange(3);
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      // Rank 0 waits for rank 2, which waits until all strangers were sent away.
      const auto after_strangers =
          [&](const std::string& mine) -> Result<std::vector<std::string>> {
        REGATTA_TRY(texts, exchange.of(rank)(mine));
        for (const Stranger& stranger : strangers) {
          if (rank != 2) continue;
          const os::UniqueFd fd = call_as(stranger, texts[0]);
          shutdown(fd.get(), SHUT_WR);
          EXPECT_TRUE(is_closed_by_peer(fd)) << stranger.refusal;
        }
        return texts;
      };
      auto world = Communicator::connect(Rank{rank}, 3, after_strangers,
                                         test_options(TestLayout::kMixed, rank));
      ASSERT_TRUE(world) << world.error().message;
      int sum = rank;
      EXPECT_TRUE(world->all_reduce(&sum, &sum, 1, DataType::kI32, ReduceOp::kSum).wait());
      EXPECT_EQ(sum, 3);
    });
  for (std::thread& thread : threads)
    thread.join();
  std::string log = testing::internal::GetCapturedStderr();
  for (const Stranger& stranger : strangers) {
    const auto at = log.find(stranger.refusal);
    EXPECT_NE(at, std::string::npos) << stranger.refusal << "\n" << log;
    if (at == std::string::npos) continue;
    const auto line = log.rfind('\n', at) + 1;  // npos + 1 is the start
    EXPECT_THAT(log.substr(line, at - line),
                testing::HasSubstr("warning coll: rank 0 refused a connection from "));
    log.erase(line, log.find('\n', at) + 1 - line);  // one line each
  }
}

TEST(Bootstrap, NamesTheMissingRanksInTime) {
  const Seconds before = os::monotonic_now();
  LocalExchange exchange(3);
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      CommunicatorOptions options = test_options(TestLayout::kTcp, rank);
      options.peer_timeout = Seconds{0.5};
      options.rank_names = {"rank 0 (a)", "rank 1 (b)", "rank 2 (c)"};
      const auto world = Communicator::connect(Rank{rank}, 3, exchange.of(rank), options);
      ASSERT_FALSE(world);
      EXPECT_EQ(world.error().code, Code::kTimeout);
      EXPECT_EQ(world.error().message,
                "rank 2 (c) at s2: no connection within 10.5 s; see whether it runs and can be "
                "reached");
    });
  // It gives an endpoint and is never seen again, though its process lives.
  const auto listener = listen_tcp("127.0.0.1");
  ASSERT_TRUE(listener);
  const auto texts = exchange.of(2)(format_endpoint(
      {.address = "127.0.0.1", .port = listener->port, .unix_name = "", .server = "s2"}));
  EXPECT_TRUE(texts);
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_LT(os::monotonic_now() - before, Seconds{12});
}

// The death of one that was told an endpoint, before or after it made connections.
TEST(Bootstrap, NamesARankWhoseProcessEndedSoonToAllOthers) {
  for (const int dead : {0, 1, 3}) {
    const Seconds before = os::monotonic_now();
    LocalExchange exchange(4);
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int rank = 0; rank < 4; ++rank)
      threads.emplace_back([&, rank] {
        if (rank == dead) {
          std::uint16_t port = 0;
          {
            const auto listener = listen_tcp("127.0.0.1");
            ASSERT_TRUE(listener);
            port = listener->port;
          }
          EXPECT_TRUE(exchange.of(rank)(format_endpoint(
              {.address = "127.0.0.1", .port = port, .unix_name = "gone", .server = "s0"})));
          return;
        }
        const CommunicatorOptions options = test_options(TestLayout::kShm, rank);
        const auto world = Communicator::connect(Rank{rank}, 4, exchange.of(rank), options);
        ASSERT_FALSE(world);
        EXPECT_EQ(world.error().code, Code::kUnavailable);
        EXPECT_THAT(world.error().message,
                    testing::StartsWith("rank " + std::to_string(dead) + " at s0: "));
      });
    for (std::thread& thread : threads)
      thread.join();
    EXPECT_LT(os::monotonic_now() - before, Seconds{3});
  }
}

TEST(Bootstrap, FallsBackToTcpWhenSharedMemoryIsOutOfReach) {
  LocalExchange exchange(2);
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      // The unix socket of rank 0 is not where the endpoint says.
      const auto misleading = [&](const std::string& mine) -> Result<std::vector<std::string>> {
        auto endpoint = parse_endpoint(mine);
        endpoint->unix_name += "-elsewhere";
        return exchange.of(rank)(format_endpoint(*endpoint));
      };
      auto world =
          Communicator::connect(Rank{rank}, 2, misleading, test_options(TestLayout::kShm, rank));
      ASSERT_TRUE(world) << world.error().message;
      std::vector<int> data(50000, rank);
      EXPECT_TRUE(
          world->all_reduce(data.data(), data.data(), data.size(), DataType::kI32, ReduceOp::kSum)
              .wait());
      EXPECT_EQ(data, std::vector<int>(50000, 1));
      EXPECT_EQ(traffic_of(*world).shared_bytes, std::vector<long long>(2, 0));
    });
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace
}  // namespace regatta::comm
