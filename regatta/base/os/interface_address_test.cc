#include <gtest/gtest.h>

#include "regatta/base/os/netlink.h"

namespace regatta::os {
namespace {

TEST(InterfaceAddresses, HoldThatOfLoopbackAndNotAnothers) {
  const auto all = interfaces_by_address();
  ASSERT_TRUE(all.contains(0x7f000001));
  EXPECT_EQ(all.at(0x7f000001), "lo");
  EXPECT_TRUE(is_own_address(0x7f000001));
  EXPECT_FALSE(is_own_address(0xc0000201)) << "192.0.2.1 is nobody's (RFC 5737)";
}

}  // namespace
}  // namespace regatta::os
