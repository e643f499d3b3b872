#include "regatta/base/net/line_server.h"

#include <array>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/socket.h"

namespace regatta::net {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LineServerOf : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = os::TempFolder::create("line_server");
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    auto listener = os::listen_unix(path());
    ASSERT_TRUE(listener) << listener.error().message;
    auto server = LineServer::create(
        std::move(*listener), {.clients_max = 2, .line_max = 8, .refusal = "too many clients"});
    ASSERT_TRUE(server) << server.error().message;
    server_.emplace(std::move(*server));
    handlers_.connected = [this](ClientId id, int) { connected_.push_back(id); };
    handlers_.line = [this](ClientId, std::string_view line) -> Status {
      lines_.emplace_back(line);
      if (line == "bad") return Error{Code::kInvalidInput, "a bad line"};
      return {};
    };
    handlers_.closed = [this](ClientId, const Status& why) {
      closed_.push_back(why ? "left" : why.error().message);
    };
  }

  std::string path() const { return folder_->path() + "/socket"; }
  os::UniqueFd connect() {
    auto fd = os::connect_unix(path());
    EXPECT_TRUE(fd) << fd.error().message;
    serve();
    return fd ? std::move(*fd) : os::UniqueFd();
  }
  void serve(int turns = 1) {
    for (int i = 0; i < turns; ++i)
      ASSERT_TRUE(server_->serve(Seconds{}, handlers_));
  }
  void send(const os::UniqueFd& fd, std::string_view text) {
    ASSERT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    serve();
  }
  static std::string read(const os::UniqueFd& fd) {
    std::array<char, 256> block{};
    const ssize_t count = ::recv(fd.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (count < 0) return "nothing yet";
    return count == 0 ? "closed" : std::string(block.data(), static_cast<std::size_t>(count));
  }

  std::optional<os::TempFolder> folder_;
  std::optional<LineServer> server_;
  LineHandlers handlers_;
  std::vector<ClientId> connected_;
  std::vector<std::string> lines_;
  std::vector<std::string> closed_;
};

TEST_F(LineServerOf, GivesTheLinesOfItsClientsAndAnswers) {
  const os::UniqueFd one = connect();
  const os::UniqueFd two = connect();
  send(one, "first\nsec");
  send(two, "other\n");
  send(one, "ond\n");
  EXPECT_THAT(lines_, ElementsAre("first", "other", "second"));
  EXPECT_TRUE(server_->send(connected_[1], "yes\n"));
  EXPECT_EQ(read(two), "yes\n");
  EXPECT_EQ(read(one), "nothing yet");
  server_->send_to_all("all\n");
  EXPECT_EQ(read(one), "all\n");
}

TEST_F(LineServerOf, TellsThatAClientLeft) {
  {
    const os::UniqueFd one = connect();
    EXPECT_EQ(server_->client_count(), 1U);
  }
  serve();
  EXPECT_EQ(server_->client_count(), 0U);
  EXPECT_THAT(closed_, ElementsAre("left"));
  EXPECT_FALSE(server_->send(connected_[0], "anybody?\n"));
}

// As many lines as `server` takes from one client in `time`, of more than enough.
std::size_t lines_taken(LineServer& server, const std::string& path, Seconds time) {
  auto fd = os::connect_unix(path);
  EXPECT_TRUE(fd);
  std::string piece;
  for (int i = 0; i < 2000; ++i)
    piece += "a\n";
  EXPECT_EQ(::send(fd->get(), piece.data(), piece.size(), MSG_DONTWAIT | MSG_NOSIGNAL),
            static_cast<ssize_t>(piece.size()));
  fd->reset();  // its lines are taken all the same
  std::size_t count = 0;
  LineHandlers handlers;
  handlers.line = [&](ClientId, std::string_view) -> Status {
    ++count;
    return {};
  };
  const Seconds end = os::monotonic_now() + time;
  for (Seconds now = os::monotonic_now(); now < end; now = os::monotonic_now())
    EXPECT_TRUE(server.serve(end - now, handlers));
  return count;
}

TEST_F(LineServerOf, ReadsAClientThatSendsManyLinesMoreSlowly) {
  const std::string limited = folder_->path() + "/limited";
  auto server = LineServer::create(*os::listen_unix(limited),
                                   {.clients_max = 2, .lines_per_second = 500, .burst_lines = 10});
  ASSERT_TRUE(server);
  const Seconds begin = os::monotonic_now();
  const std::size_t first = lines_taken(*server, limited, Seconds{0.2});
  const double earned = 500 * (os::monotonic_now() - begin).value;
  EXPECT_GE(first, 20U);
  EXPECT_LE(static_cast<double>(first), 10 + earned + 10 + 1);
  EXPECT_EQ(server->client_count(), 1U);
}

TEST_F(LineServerOf, TakesAllLinesOfASlowedClientThatHasLeft) {
  const std::string limited = folder_->path() + "/limited";
  auto server =
      LineServer::create(*os::listen_unix(limited),
                         {.clients_max = 2, .lines_per_second = 100'000, .burst_lines = 100});
  ASSERT_TRUE(server);
  EXPECT_EQ(lines_taken(*server, limited, Seconds{1}), 2000U);
  EXPECT_EQ(server->client_count(), 0U);
}

TEST_F(LineServerOf, RefusesAClientBeyondTheLimitAndTakesOneAgainLater) {
  std::optional<os::UniqueFd> one = connect();
  const os::UniqueFd two = connect();
  const os::UniqueFd three = connect();
  EXPECT_EQ(read(three), "too many clients\n");
  EXPECT_EQ(read(three), "closed");
  EXPECT_EQ(server_->client_count(), 2U);
  one.reset();
  serve();
  const os::UniqueFd four = connect();
  EXPECT_EQ(server_->client_count(), 2U);
  EXPECT_EQ(read(four), "nothing yet");
}

TEST_F(LineServerOf, ClosesAClientWhoseLineIsTooLongBeforeItEnds) {
  const os::UniqueFd one = connect();
  send(one, "123456789");
  EXPECT_THAT(lines_, IsEmpty());
  EXPECT_THAT(closed_, ElementsAre("a line is longer than 8 bytes"));
  EXPECT_EQ(read(one), "closed");
}

TEST_F(LineServerOf, ClosesAClientWhoseLineIsRefusedAndReadsNoFurther) {
  const os::UniqueFd one = connect();
  send(one, "ok\nbad\nmore\n");
  EXPECT_THAT(lines_, ElementsAre("ok", "bad"));
  EXPECT_THAT(closed_, ElementsAre("a bad line"));
}

TEST_F(LineServerOf, SendsAClientItsLastLineWhenItIsClosed) {
  handlers_.closed = [this](ClientId id, const Status&) { server_->send(id, "go away\n"); };
  const os::UniqueFd one = connect();
  send(one, "bad\n");
  EXPECT_EQ(read(one), "go away\n");
  EXPECT_EQ(read(one), "closed");
}

TEST_F(LineServerOf, MayCloseAClientInItsOwnHandler) {
  handlers_.line = [this](ClientId id, std::string_view line) -> Status {
    lines_.emplace_back(line);
    server_->close(id);
    return {};
  };
  const os::UniqueFd one = connect();
  send(one, "a\nb\n");
  EXPECT_THAT(lines_, ElementsAre("a"));
  EXPECT_THAT(closed_, IsEmpty());
}

TEST_F(LineServerOf, ClosesAClientThatDoesNotReadWhatItIsSent) {
  const os::UniqueFd one = connect();
  const std::string line(100'000, 'x');
  int sent = 0;
  while (sent < 100 && server_->send(connected_[0], line + "\n"))
    ++sent;
  EXPECT_LT(sent, 100);
  EXPECT_EQ(server_->client_count(), 0U);
}

TEST_F(LineServerOf, LetsAClientSendLongerLinesOnceItIsKnown) {
  const os::UniqueFd one = connect();
  server_->set_line_max(connected_[0], 20);
  send(one, "123456789\n");
  EXPECT_THAT(lines_, ElementsAre("123456789"));
}

}  // namespace
}  // namespace regatta::net
