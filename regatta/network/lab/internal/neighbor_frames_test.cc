#include "regatta/network/lab/internal/neighbor_frames.h"

#include <gtest/gtest.h>

namespace regatta::lab {
namespace {

TEST(NeighborFrame, CarriesThePortOfItsSender) {
  const std::string frame = neighbor_frame("leaf0", 4711);
  EXPECT_EQ(frame.size(), 60U) << "the shortest frame of Ethernet";
  EXPECT_EQ(parse_neighbor_frame(frame), 4711U);
}

TEST(NeighborFrame, IsNotReadFromOthers) {
  const std::string frame = neighbor_frame("leaf0", 7);
  EXPECT_EQ(parse_neighbor_frame(""), std::nullopt);
  EXPECT_EQ(parse_neighbor_frame(frame.substr(0, 20)), std::nullopt);
  std::string other = frame;
  other[12] = 8;  // IPv4
  EXPECT_EQ(parse_neighbor_frame(other), std::nullopt);
  std::string address = frame;
  address[23] = 4;  // a port that is known by an address
  EXPECT_EQ(parse_neighbor_frame(address), std::nullopt);
}

}  // namespace
}  // namespace regatta::lab
