// Uplinks and the listener that they come to, over TCP and over a socket with a path.
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/socket.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/reporter_listener.h"

namespace regatta::probe {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Seconds kPatience{10};

class ConnectionAndListener : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto folder = os::TempFolder::create("listener");
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    at_ = GetParam() == "unix" ? "unix:" + folder_->path() + "/listener" : "127.0.0.1:0";
    open();
  }

  void open() {
    auto listener = ReporterListener::open(
        at_, {.servers = {"s0", "s1"}, .period = {0.01}, .plan = 7, .token = ""}, {100, 100});
    ASSERT_TRUE(listener) << listener.error().message;
    listener_.emplace(std::move(*listener));
    at_ = listener_->address();  // the same port when it opens again
  }

  CollectorConnection connect_to(const std::string& server, std::uint64_t plan = 7) {
    auto uplink = CollectorConnection::open(
        {.collector = at_,
         .handshake = {.server = server, .period = {0.01}, .plan = plan, .clock = {}, .token = ""},
         .again = Seconds{0.05},
         .note =
             [this](const std::string& note) {
               const std::lock_guard lock(mutex_);
               notes_.push_back(note);
             },
         .on_line = [this](std::string_view line) -> Status {
           const std::lock_guard lock(mutex_);
           orders_.emplace_back(line);
           return {};
         }});
    EXPECT_TRUE(uplink);
    return std::move(*uplink);
  }

  // Until `enough`; what comes is in came_.
  template <typename Enough>
  bool wait(Enough&& enough) {
    const Seconds until = os::monotonic_now() + kPatience;
    while (!enough()) {
      if (os::monotonic_now() > until) return false;
      if (!listener_) {
        os::sleep_for(Seconds{0.01});
        continue;
      }
      EXPECT_TRUE(
          listener_->wait(Seconds{0.01}, [this](NodeId server, std::string_view line) -> Status {
            if (line == "bad") return Error{Code::kInvalidInput, "that is no line"};
            came_[server.value].emplace_back(line);
            return {};
          }));
      for (const RefusedReporter& one : listener_->consume_refusals())
        refusals_.push_back(one.why);
    }
    return true;
  }
  // Tells it again and again until a line came.
  bool comes(CollectorConnection& uplink, int server, const std::string& line) {
    return wait([&] {
      uplink.send(line + "\n");
      return std::ranges::count(came_[server], line) > 0;
    });
  }
  std::vector<std::string> orders() {
    const std::lock_guard lock(mutex_);
    return orders_;
  }
  std::vector<std::string> notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

  std::optional<os::TempFolder> folder_;
  std::string at_;
  std::optional<ReporterListener> listener_;
  std::map<int, std::vector<std::string>> came_;
  std::vector<std::string> refusals_;
  std::mutex mutex_;
  std::vector<std::string> notes_;
  std::vector<std::string> orders_;
};

TEST_P(ConnectionAndListener, BringLinesWithTheServerTheyAreOf) {
  CollectorConnection one = connect_to("s0");
  CollectorConnection two = connect_to("s1");
  EXPECT_TRUE(comes(one, 0, "from s0"));
  EXPECT_TRUE(comes(two, 1, "from s1"));
  EXPECT_EQ(std::ranges::count(came_[0], "from s1"), 0);
  EXPECT_THAT(refusals_, IsEmpty());
  EXPECT_THAT(notes(), IsEmpty());
}

TEST_P(ConnectionAndListener, BringOrdersBack) {
  CollectorConnection uplink = connect_to("s0");
  EXPECT_FALSE(listener_->send(NodeId{0}, "too early\n"));
  ASSERT_TRUE(comes(uplink, 0, "here"));
  EXPECT_TRUE(listener_->send(NodeId{0}, "flows\ncarriers\n"));
  EXPECT_FALSE(listener_->send(NodeId{1}, "nobody is there\n"));
  EXPECT_TRUE(wait([&] { return orders().size() == 2; }));
  EXPECT_THAT(orders(), ElementsAre("flows", "carriers"));
}

TEST_P(ConnectionAndListener, BringAnOrderThatComesRightBehindTheAnswer) {
  const CollectorConnection uplink = connect_to("s0");
  EXPECT_TRUE(wait([&] { return listener_->send(NodeId{0}, "carriers\n"); }));
  EXPECT_TRUE(wait([&] { return !orders().empty(); }));
  EXPECT_THAT(orders(), ElementsAre("carriers"));
  EXPECT_THAT(listener_->consume_arrivals(), ElementsAre(NodeId{0}));
  EXPECT_THAT(listener_->consume_arrivals(), IsEmpty());
  EXPECT_THAT(notes(), IsEmpty());
}

TEST_P(ConnectionAndListener, SayOnceThatAProberIsSentAwayAgainAndAgain) {
  CollectorConnection uplink = connect_to("s0");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(comes(uplink, 0, "good" + std::to_string(i)));
    const std::size_t before = refusals_.size();
    uplink.send("bad\n");
    ASSERT_TRUE(wait([&] { return refusals_.size() > before; }));
  }
  EXPECT_EQ(std::ranges::count_if(
                notes(), [](const std::string& one) { return one.find("no line") != one.npos; }),
            1);
}

TEST_P(ConnectionAndListener, FindEachOtherAgainWhenTheListenerWasClosed) {
  CollectorConnection uplink = connect_to("s0");
  ASSERT_TRUE(comes(uplink, 0, "first"));
  listener_.reset();
  ASSERT_TRUE(wait([&] {
    uplink.send("into nothing\n");
    return !notes().empty();
  }));
  EXPECT_THAT(notes()[0], HasSubstr("is gone; this goes on without it"));
  open();
  EXPECT_TRUE(comes(uplink, 0, "second"));
  EXPECT_TRUE(wait([&] { return notes().back() == "reports to " + at_ + " again"; }));
  EXPECT_EQ(std::ranges::count(came_[0], "into nothing"), 0) << "what is old is of no use";
}

TEST_P(ConnectionAndListener, StartInAnyOrder) {
  listener_.reset();
  CollectorConnection uplink = connect_to("s0");
  ASSERT_TRUE(wait([&] { return !notes().empty(); }));
  EXPECT_THAT(notes()[0], HasSubstr("; this tries again"));
  open();
  EXPECT_TRUE(comes(uplink, 0, "here"));
}

TEST_P(ConnectionAndListener, PartWhereThePlansDiffer) {
  CollectorConnection other = connect_to("s0", 8);
  ASSERT_TRUE(wait([&] { return !refusals_.empty() && !notes().empty(); }));
  EXPECT_THAT(refusals_[0], HasSubstr("server s0 probes by another plan"));
  EXPECT_THAT(notes()[0], HasSubstr("server s0 probes by another plan"));
  EXPECT_THAT(came_[0], IsEmpty());
}

TEST_P(ConnectionAndListener, LetInOneProberForEachServer) {
  CollectorConnection one = connect_to("s0");
  ASSERT_TRUE(comes(one, 0, "mine"));
  CollectorConnection other = connect_to("s0");
  ASSERT_TRUE(wait([&] {
    one.send("still here\n");
    return !refusals_.empty();
  }));
  EXPECT_THAT(refusals_[0], HasSubstr("another prober reports for server s0"));
  EXPECT_TRUE(comes(one, 0, "and goes on"));
}

TEST_P(ConnectionAndListener, TakeANewProberAtOnceWhenTheOldOneHasEnded) {
  {
    CollectorConnection one = connect_to("s0");
    ASSERT_TRUE(comes(one, 0, "old"));
  }
  CollectorConnection other = connect_to("s0");
  EXPECT_TRUE(comes(other, 0, "new"));
}

TEST_P(ConnectionAndListener, PartAfterALineThatIsNoneOrTooLong) {
  CollectorConnection uplink = connect_to("s0");
  ASSERT_TRUE(comes(uplink, 0, "good"));
  uplink.send("bad\n");
  ASSERT_TRUE(wait([&] { return !refusals_.empty(); }));
  EXPECT_EQ(refusals_[0], "that is no line");
  ASSERT_TRUE(comes(uplink, 0, "back"));
  uplink.send(std::string(101, 'x'));
  ASSERT_TRUE(wait([&] { return refusals_.size() > 1; }));
  EXPECT_THAT(refusals_[1], HasSubstr("a line is longer than 100 bytes"));
  EXPECT_TRUE(comes(uplink, 0, "and back"));
}

TEST_P(ConnectionAndListener, GiveUpACollectorThatDoesNotReadInsteadOfWaiting) {
  CollectorConnection uplink = connect_to("s0");
  ASSERT_TRUE(comes(uplink, 0, "good"));
  const Seconds begin = os::monotonic_now();
  const std::string line = std::string(99, 'x') + "\n";
  for (int i = 0; i < 200000 && notes().empty(); ++i)
    uplink.send(line);
  EXPECT_LT((os::monotonic_now() - begin).value, 5);
  const auto heard = [this] { return !notes().empty(); };
  for (int i = 0; i < 500 && !heard(); ++i)
    os::sleep_for(Seconds{0.01});
  EXPECT_THAT(notes(), Contains(HasSubstr("is gone")));
}

INSTANTIATE_TEST_SUITE_P(Over, ConnectionAndListener, testing::Values("tcp", "unix"),
                         [](const auto& one) { return one.param; });

class ListenerOnly : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = ReporterListener::open(
        "127.0.0.1:0", {.servers = {"s0"}, .period = {0.01}, .plan = 7, .token = "secret"}, {100});
    ASSERT_TRUE(listener) << listener.error().message;
    listener_.emplace(std::move(*listener));
  }
  os::UniqueFd connect_to() {
    auto fd = os::connect_tcp(*os::parse_host_port(listener_->address()), Seconds{1});
    EXPECT_TRUE(fd);
    return std::move(*fd);
  }
  static std::string handshake(const std::string& token) {
    return handshake_line({.server = "s0",
                           .period = {0.01},
                           .plan = 7,
                           .clock = os::system_now(),
                           .token = token}) +
           "\n";
  }
  // Response of the listener to these bytes, and whether it accepts them.
  std::string answer(const std::string& bytes) {
    const os::UniqueFd fd = connect_to();
    EXPECT_EQ(::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    std::string said(2000, '\0');
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(listener_->wait(Seconds{0.02}, [this](NodeId, std::string_view line) -> Status {
        came_.emplace_back(line);
        return {};
      }));
      const ssize_t count = ::recv(fd.get(), said.data(), said.size(), MSG_DONTWAIT);
      if (count >= 0) return said.substr(0, static_cast<std::size_t>(count));
    }
    return "nothing";
  }

  std::optional<ReporterListener> listener_;
  std::vector<std::string> came_;
};

TEST_F(ListenerOnly, AsksForTheToken) {
  EXPECT_THAT(answer(handshake("guess")), HasSubstr("no its token is another one"));
  EXPECT_THAT(answer(handshake("")), HasSubstr("no its token is another one"));
  EXPECT_EQ(answer(handshake("secret") + "a line\n"), "ok\n");
  EXPECT_THAT(came_, ElementsAre("a line"));
}

TEST_F(ListenerOnly, ListensToNobodyWhoDoesNotSayWhoItIs) {
  EXPECT_THAT(answer("GET / HTTP/1.1\r\n\r\n"), HasSubstr("no this is no handshake of a prober"));
  EXPECT_THAT(answer("w 1 2 3 4 5\n"), HasSubstr("no this is no handshake"));
  EXPECT_THAT(answer(std::string(5000, 'x')), HasSubstr("no a line is longer than 1024 bytes"));
  EXPECT_THAT(came_, IsEmpty());
}

TEST_F(ListenerOnly, KeepsABoundedNumberOfGuests) {
  std::vector<os::UniqueFd> guests;
  for (int i = 0; i < 400; ++i) {
    guests.push_back(connect_to());
    if (i % 50 != 0) continue;
    ASSERT_TRUE(listener_->wait(Seconds{0.001}, [](auto, auto) { return Status(); }));
  }
  ASSERT_TRUE(listener_->wait(Seconds{0.05}, [](auto, auto) { return Status(); }));
  EXPECT_EQ(listener_->consume_refusals().size(), 16U) << "so many are told";
  char byte = 0;
  EXPECT_EQ(::recv(guests.front().get(), &byte, 1, MSG_DONTWAIT), 1) << "the first had to go";
  EXPECT_EQ(::recv(guests.back().get(), &byte, 1, MSG_DONTWAIT), -1) << "the last may still speak";
  EXPECT_EQ(answer(handshake("secret")), "ok\n") << "a prober comes in all the same";
}

TEST(UplinkOf, APlaceThatIsNoneIsRefused) {
  for (const char* place : {"", "head-1:x", ":27899", "localhost:0", "unix:"}) {
    EXPECT_FALSE(CollectorConnection::open({.collector = place, .handshake = {}, .note = {}}))
        << place;
    EXPECT_FALSE(check_collector(place)) << place;
  }
}

TEST(CheckCollector, RefusesWhatCanNeverBeReachedAndNothingThatMayCome) {
  const auto folder = os::TempFolder::create("collector");
  ASSERT_TRUE(folder);
  const std::string here = "unix:" + folder->path();
  ASSERT_TRUE(os::write_file(folder->path() + "/file", "no socket"));
  for (const std::string& never : {here + "/missing/socket", here + "/file", here + "/file/socket",
                                   here, std::string("no host:27899")}) {
    const Status checked = check_collector(never);
    ASSERT_FALSE(checked) << never;
    EXPECT_EQ(checked.error().code, Code::kInvalidInput);
    EXPECT_THAT(checked.error().message, HasSubstr("; ")) << "it has a remedy";
  }
  for (const std::string& later :
       {here + "/later", std::string("127.0.0.1:1"), std::string("localhost")})
    EXPECT_TRUE(check_collector(later)) << later;
}

TEST(ListenerOf, APlaceThatIsNoneIsRefused) {
  for (const char* place : {"", "head-1", "70000", "192.0.2.1:0", "unix:"})
    EXPECT_FALSE(ReporterListener::open(place, {}, {})) << place;
  EXPECT_EQ(ReporterListener::open("70000", {}, {}).error().message,
            "70000: there is no such port; give one up to 65535, like 27899");
  const auto any = ReporterListener::open("0", {}, {});
  ASSERT_TRUE(any) << any.error().message;
  EXPECT_THAT(any->address(), HasSubstr("0.0.0.0:"));
}

}  // namespace
}  // namespace regatta::probe
