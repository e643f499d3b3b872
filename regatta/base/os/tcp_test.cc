#include <array>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/os/socket.h"

namespace regatta::os {
namespace {

using testing::HasSubstr;

TEST(HostPort, IsReadAsPeopleWriteIt) {
  const auto named = parse_host_port("gpu-1:7000");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->host, "gpu-1");
  EXPECT_EQ(named->port, "7000");
  const auto six = parse_host_port("[fd00::1]:65535");
  ASSERT_TRUE(six);
  EXPECT_EQ(six->host, "fd00::1");
  EXPECT_EQ(to_string(*six), "[fd00::1]:65535");
  EXPECT_EQ(parse_host_port(":7000")->host, "");
  for (const char* wrong : {"", "gpu-1", "gpu-1:", "gpu-1:http", "gpu-1:65536", "gpu-1:-1"}) {
    const auto none = parse_host_port(wrong);
    ASSERT_FALSE(none) << wrong;
    EXPECT_EQ(none.error().code, Code::kInvalidInput);
    EXPECT_THAT(none.error().message, HasSubstr("like gpu-1:7000"));
  }
}

TEST(Tcp, CarriesWhatIsSentAndKnowsBothEnds) {
  const auto listener = listen_tcp({"127.0.0.1", "0"});
  ASSERT_TRUE(listener) << listener.error().message;
  const HostPort at = local_endpoint(listener->get());
  EXPECT_EQ(at.host, "127.0.0.1");
  const auto one = connect_tcp(at, Seconds{1});
  ASSERT_TRUE(one) << one.error().message;
  const UniqueFd other(::accept(listener->get(), nullptr, nullptr));
  ASSERT_TRUE(other);
  EXPECT_EQ(to_string(peer_endpoint(one->get())), to_string(at));
  EXPECT_EQ(to_string(peer_endpoint(other.get())), to_string(local_endpoint(one->get())));
  ASSERT_EQ(::write(one->get(), "news", 4), 4);
  std::array<char, 8> block{};
  ASSERT_EQ(::read(other.get(), block.data(), block.size()), 4);
  EXPECT_EQ(std::string(block.data()), "news");
}

TEST(ResolveHost, KnowsWhichHostThereIsNot) {
  EXPECT_TRUE(resolve_host({"127.0.0.1", "7000"}));
  const Status none = resolve_host({"no host", "7000"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInvalidInput);
  EXPECT_THAT(none.error().message, HasSubstr("no host: no host is called so"));
}

TEST(Tcp, SaysWhyNobodyAnswers) {
  const HostPort free = [] {
    const auto listener = listen_tcp({"127.0.0.1", "0"});
    return local_endpoint(listener->get());
  }();
  const auto refused = connect_tcp(free, Seconds{1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnavailable);
  EXPECT_EQ(refused.error().message,
            to_string(free) + ": nobody answers there (connection refused)");
  const auto nameless = connect_tcp({"no such host", "7000"}, Seconds{1});
  ASSERT_FALSE(nameless);
  EXPECT_EQ(nameless.error().code, Code::kInvalidInput);
}

TEST(Tcp, ListensAtItsOwnFreePortsOnly) {
  const auto listener = listen_tcp({"127.0.0.1", "0"});
  ASSERT_TRUE(listener);
  const auto taken = listen_tcp(local_endpoint(listener->get()));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Code::kUnavailable);
  EXPECT_THAT(taken.error().message,
              HasSubstr("cannot listen there: address already in use; "
                        "choose an address of this machine and a free port"));
  const auto foreign = listen_tcp({"192.0.2.1", "0"});
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Code::kInvalidInput);
}

}  // namespace
}  // namespace regatta::os
