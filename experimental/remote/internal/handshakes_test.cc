#include "experimental/remote/internal/handshakes.h"

#include <string>

#include <gtest/gtest.h>

namespace regatta::remote {
namespace {

int begin_all(Handshakes& handshakes, const std::string& address) {
  int begun = 0;
  while (begun < 2 * Handshakes::kOfAllMax && handshakes.begin(address))
    ++begun;
  return begun;
}

TEST(Handshakes, OfOneAddressLeaveRoomForOthers) {
  Handshakes handshakes;
  EXPECT_EQ(begin_all(handshakes, "10.0.0.1"), Handshakes::kOfAddressMax);
  EXPECT_TRUE(handshakes.begin("10.0.0.2"));
  handshakes.end("10.0.0.1");
  EXPECT_TRUE(handshakes.begin("10.0.0.1"));
  EXPECT_FALSE(handshakes.begin("10.0.0.1"));
}

TEST(Handshakes, OfOneHostCountTogetherInIpv6) {
  Handshakes handshakes;
  EXPECT_EQ(begin_all(handshakes, "fd00::1"), Handshakes::kOfAddressMax);
  EXPECT_FALSE(handshakes.begin("fd00::2"));
  EXPECT_TRUE(handshakes.begin("fd00:0:0:1::1"));
}

TEST(Handshakes, OfManyAddressesAreBounded) {
  Handshakes handshakes;
  int begun = 0;
  for (int i = 0; i < 256; ++i)
    begun += begin_all(handshakes, "10.0.1." + std::to_string(i));
  EXPECT_EQ(begun, Handshakes::kOfAllMax);
}

}  // namespace
}  // namespace regatta::remote
