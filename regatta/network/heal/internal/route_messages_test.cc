#include "regatta/network/heal/internal/route_messages.h"

#include <cstring>

#include <gmock/gmock.h>

namespace regatta::heal {
namespace {

using testing::IsEmpty;

// The messages of a block, as a kernel would send them.
class RouteMessages : public testing::Test {
 protected:
  const nlmsghdr& message() const { return *reinterpret_cast<const nlmsghdr*>(block_.data()); }
  rtmsg& head() { return *reinterpret_cast<rtmsg*>(block_.data() + sizeof(nlmsghdr)); }
  void append(unsigned short type, std::uint32_t value) {
    const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(sizeof value)), type};
    block_.append(reinterpret_cast<const char*>(&attribute), sizeof attribute);
    block_.append(reinterpret_cast<const char*>(&value), sizeof value);
    const auto length = static_cast<std::uint32_t>(block_.size());
    std::memcpy(block_.data(), &length, sizeof length);
  }

  const KernelRoute route_{.destination = 0x0a000003,
                           .hops = {{4, 0x0a400001, 1}, {5, 0x0a400003, 3}}};
  std::string block_;
};

TEST_F(RouteMessages, ReadBackTheRouteThatTheyInstall) {
  append_route(block_, route_, 7, true);
  const auto read = parse_route(message());
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, route_);
  EXPECT_EQ(read->protocol, RTPROT_STATIC);
}

TEST_F(RouteMessages, LeaveOutOtherTablesPrefixesMetricsAndTypesOfService) {
  append_route(block_, route_, 7, true, 77);
  EXPECT_FALSE(parse_route(message())) << "another table";
  block_.clear();
  append_route(block_, route_, 7, true);
  head().rtm_dst_len = 24;
  EXPECT_FALSE(parse_route(message())) << "a prefix";
  head().rtm_dst_len = 32;
  head().rtm_tos = 8;
  EXPECT_FALSE(parse_route(message())) << "a type of service";
  head().rtm_tos = 0;
  append(RTA_PRIORITY, 20);
  EXPECT_FALSE(parse_route(message())) << "a metric";
  EXPECT_TRUE(is_single_main_route(message()));
}

TEST_F(RouteMessages, GiveNoHopsOfARouteThatDiscards) {
  append_route(block_, route_, 7, true);
  head().rtm_type = RTN_BLACKHOLE;
  head().rtm_protocol = RTPROT_BOOT;
  const auto read = parse_route(message());
  ASSERT_TRUE(read);
  EXPECT_THAT(read->hops, IsEmpty());
  EXPECT_EQ(read->protocol, RTPROT_BOOT);
}

TEST_F(RouteMessages, RemoveWhatTheyInstalled) {
  append_route_removal(block_, route_.destination, 9, 77);
  EXPECT_EQ(message().nlmsg_type, RTM_DELROUTE);
  EXPECT_EQ(head().rtm_table, 77);
  EXPECT_EQ(head().rtm_dst_len, 32);
}

}  // namespace
}  // namespace regatta::heal
