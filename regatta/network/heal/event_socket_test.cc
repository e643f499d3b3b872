#include "regatta/network/heal/event_socket.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/socket.h"
#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class EventSocketOf : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = os::TempFolder::create("event_socket");
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    path_ = folder_->path() + "/heal.sock";
    auto event_socket = EventSocket::open(path_, [] { return std::string("hello"); });
    ASSERT_TRUE(event_socket) << event_socket.error().message;
    event_socket_.emplace(std::move(*event_socket));
  }

  os::UniqueFd connect() {
    auto fd = os::connect_unix(path_);
    EXPECT_TRUE(fd) << fd.error().message;
    return fd ? std::move(*fd) : os::UniqueFd();
  }
  std::vector<FaultReport> consume_reports() {
    return event_socket_->consume_reports(fabric_.graph);
  }
  static void send(const os::UniqueFd& fd, const std::string& text) {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  static std::string read(const os::UniqueFd& fd) {
    std::array<char, 4096> block{};
    const ssize_t count = ::recv(fd.get(), block.data(), block.size(), MSG_DONTWAIT);
    return count > 0 ? std::string(block.data(), static_cast<std::size_t>(count)) : "";
  }

  TestFabricPaths fabric_ = TestFabricPaths::two_tiers(2, 2);
  std::optional<os::TempFolder> folder_;
  std::string path_;
  std::optional<EventSocket> event_socket_;
};

TEST_F(EventSocketOf, GreetsAndTellsEverySubscriber) {
  const os::UniqueFd one = connect();
  const os::UniqueFd two = connect();
  pollfd wait{event_socket_->fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 1);
  EXPECT_THAT(consume_reports(), IsEmpty());
  event_socket_->broadcast("news");
  EXPECT_EQ(read(one), "hello\nnews\n");
  EXPECT_EQ(read(two), "hello\nnews\n");
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
}

TEST_F(EventSocketOf, TakesReportsThatComeInPieces) {
  const os::UniqueFd fd = connect();
  consume_reports();
  send(fd, R"({"broken": {"switch)");
  EXPECT_THAT(consume_reports(), IsEmpty());
  send(fd, "\": \"spine0\"}}\n\n{\"broken\": {\"switch\": \"spine1\"}}\n");
  const auto reports = consume_reports();
  ASSERT_THAT(reports, SizeIs(2));
  EXPECT_EQ(reports[1].faults[0], fabric_.broken_switch("spine1"));
}

TEST_F(EventSocketOf, AnswersALineThatIsNoReport) {
  const os::UniqueFd fd = connect();
  consume_reports();
  read(fd);
  send(fd, "what?\n");
  EXPECT_THAT(consume_reports(), IsEmpty());
  EXPECT_THAT(read(fd), testing::StartsWith(R"({"error":"report: not understood)"));
}

TEST_F(EventSocketOf, ForgetsASubscriberThatLeavesOrDoesNotRead) {
  {
    const os::UniqueFd fd = connect();
    consume_reports();
    EXPECT_EQ(event_socket_->subscribers(), 1U);
  }
  consume_reports();
  EXPECT_EQ(event_socket_->subscribers(), 0U);
  const os::UniqueFd deaf = connect();
  consume_reports();
  const std::string line(100'000, 'x');
  for (int i = 0; i < 50 && event_socket_->subscribers() > 0; ++i)
    event_socket_->broadcast(line);
  EXPECT_EQ(event_socket_->subscribers(), 0U);
}

// The memory that this process has touched.
std::size_t resident_bytes() {
  const auto text = os::read_file("/proc/self/statm");
  if (!text) return 0;
  return std::stoul(text->substr(text->find(' '))) * static_cast<std::size_t>(::getpagesize());
}

// A client that never stops writing `piece` while consume_reports() is called; the longest call.
Seconds longest_take(EventSocket& socket, const topo::Graph& graph, const os::UniqueFd& fd,
                     const std::string& piece) {
  std::atomic<bool> stop = false;
  std::jthread flood([&] {
    while (!stop && ::send(fd.get(), piece.data(), piece.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  Seconds longest;
  const Seconds until = os::monotonic_now() + Seconds{0.3};
  for (Seconds now = os::monotonic_now(); now < until;) {
    socket.consume_reports(graph);
    const Seconds end = os::monotonic_now();
    longest = std::max(longest, end - now);
    now = end;
  }
  stop = true;
  ::shutdown(fd.get(), SHUT_RDWR);
  return longest;
}

TEST_F(EventSocketOf, ClosesAClientThatFloodsItWithoutALineEnd) {
  const os::UniqueFd fd = connect();
  consume_reports();
  const std::size_t before = resident_bytes();
  const Seconds longest =
      longest_take(*event_socket_, fabric_.graph, fd, std::string(1 << 20, 'x'));
  EXPECT_EQ(event_socket_->subscribers(), 0U);
  EXPECT_LT(longest, Seconds{0.1});
  EXPECT_LT(resident_bytes(), before + (std::size_t{16} << 20));
}

TEST_F(EventSocketOf, ServesOthersBesideAClientThatReportsWithoutEnd) {
  const os::UniqueFd flood = connect();
  const os::UniqueFd other = connect();
  consume_reports();
  std::string piece;
  while (piece.size() < 1 << 20)
    piece += R"({"broken": {"switch": "spine0"}})"
             "\n";
  EXPECT_LT(longest_take(*event_socket_, fabric_.graph, flood, piece), Seconds{0.1});
  send(other, "{\"broken\": {\"switch\": \"spine1\"}}\n");
  bool is_heard = false;
  for (int i = 0; i < 100 && !is_heard; ++i)
    for (const FaultReport& report : consume_reports())
      is_heard = is_heard || report.faults[0] == fabric_.broken_switch("spine1");
  EXPECT_TRUE(is_heard);
}

// 64 clients that write lines as fast as they can: the healer returns to its switches after a few
// lines of each, some milliseconds of work.
TEST_F(EventSocketOf, TakesFewLinesAtOnceWhileAllItsClientsFlood) {
  std::vector<os::UniqueFd> clients;
  for (int i = 0; i < 64; ++i)
    clients.push_back(connect());
  for (int i = 0; i < 4; ++i)
    consume_reports();
  ASSERT_EQ(event_socket_->subscribers(), 64U);
  std::string piece;
  while (piece.size() < 1 << 16)
    piece += R"({"broken": {"switch": "spine0"}})"
             "\n";
  std::size_t most = 0;
  const Seconds until = os::monotonic_now() + Seconds{0.5};
  while (os::monotonic_now() < until) {
    for (const os::UniqueFd& fd : clients)
      static_cast<void>(::send(fd.get(), piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
    most = std::max(most, consume_reports().size());
  }
  EXPECT_GT(most, 0U);
  EXPECT_LE(most, std::size_t{64} * 40);
}

TEST_F(EventSocketOf, RefusesMoreClientsThanItsLimit) {
  std::vector<os::UniqueFd> clients;
  for (int i = 0; i < 64; ++i)
    clients.push_back(connect());
  for (int i = 0; i < 4; ++i)
    consume_reports();
  EXPECT_EQ(event_socket_->subscribers(), 64U);
  const os::UniqueFd more = connect();
  consume_reports();
  EXPECT_EQ(event_socket_->subscribers(), 64U);
  EXPECT_EQ(read(more), "{\"error\":\"too many subscribers; end another one\"}\n");
}

TEST_F(EventSocketOf, TakesThePlaceOfAKilledOneOnly) {
  const auto second = EventSocket::open(path_, [] { return std::string(); });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
  event_socket_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  // A killed healer leaves a name without a listener.
  {
    const os::UniqueFd left(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    ASSERT_EQ(::bind(left.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(EventSocket::open(path_, [] { return std::string(); }));
}

TEST_F(EventSocketOf, LeavesAloneWhatIsNoSocket) {
  event_socket_.reset();
  ASSERT_TRUE(os::write_file(path_, "somebody's text"));
  const auto event_socket = EventSocket::open(path_, [] { return std::string(); });
  ASSERT_FALSE(event_socket);
  EXPECT_EQ(event_socket.error().code, Code::kInvalidInput);
  EXPECT_EQ(event_socket.error().message,
            path_ +
                ": something that is no socket lies here; move it away "
                "or choose another path for the socket");
  const auto text = os::read_file(path_);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, "somebody's text");
}

}  // namespace
}  // namespace regatta::heal
