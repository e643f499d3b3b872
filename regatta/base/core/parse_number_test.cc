#include <cstdint>

#include <gtest/gtest.h>

#include "regatta/base/core/text.h"

namespace regatta {
namespace {

TEST(ParseNumber, IsAllOfTheText) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<std::uint64_t>("00000000000000ff", 16), 255U);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number<double>("12.5"), 12.5);
  for (const char* none : {"", " 1", "1 ", "+1", "1x", "0x1", "x"}) {
    EXPECT_EQ(parse_number<int>(none), std::nullopt) << none;
    EXPECT_EQ(parse_number<double>(none), std::nullopt) << none;
  }
}

TEST(ParseNumber, FitsItsType) {
  EXPECT_EQ(parse_number<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(parse_number<std::uint16_t>("65536"), std::nullopt);
  EXPECT_EQ(parse_number<std::uint32_t>("-1"), std::nullopt);
  EXPECT_EQ(parse_number<int>("1.5"), std::nullopt);
}

}  // namespace
}  // namespace regatta
