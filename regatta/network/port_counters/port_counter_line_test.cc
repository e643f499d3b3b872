#include "regatta/network/port_counters/port_counter_line.h"

#include <cstdint>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::port_counters {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Result<PortCounterLine> parse(const std::string& line) {
  return PortCounterLine::parse(line, "counters.csv", 7, {4, 5});
}

TEST(PortCounterLine, HasATimeAPortAndNumbersThatMayBeMissing) {
  const auto line = parse("12.5,leaf0,leaf0-spine1,18446744073709551615");
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->at().value, 12.5);
  EXPECT_EQ(line->device(), "leaf0");
  EXPECT_EQ(line->port(), "leaf0-spine1");
  std::optional<std::uint64_t> count;
  ASSERT_TRUE(line->read(3, count));
  EXPECT_EQ(count, ~std::uint64_t{0});
  ASSERT_TRUE(line->read(4, count));
  EXPECT_FALSE(count) << "the line lacks it";
}

TEST(PortCounterLine, NamesFileLineAndRemedyOfWhatIsWrong) {
  const std::string long_name(65, 'x');
  const struct {
    std::string line;
    std::string message;
  } cases[] = {{"1,leaf0,port", "3 fields; write the 5 of the heading"},
               {"1,leaf0,port,1,2,3", "6 fields; write the 5 of the heading"},
               {"now,leaf0,port,1", "at_s is no number of seconds; write it like 12.5"},
               {"inf,leaf0,port,1", "at_s is no number of seconds; write it like 12.5"},
               {"1,,port,1", "the device or the port is empty or longer than 64 letters"},
               {"1,leaf0," + long_name + ",1", "is empty or longer than 64 letters"}};
  for (const auto& [line, message] : cases) {
    const auto wrong = parse(line);
    ASSERT_FALSE(wrong) << line;
    EXPECT_EQ(wrong.error().code, Code::kInvalidInput);
    EXPECT_THAT(wrong.error().message, StartsWith("counters.csv:7: "));
    EXPECT_THAT(wrong.error().message, HasSubstr(message));
  }
}

TEST(PortCounterLine, TakesNoFractionsAndNoNegativeCounts) {
  for (const std::string count : {"1.5", "-1", "18446744073709551616", "1e3", " 1"}) {
    const auto line = parse("1,leaf0,port," + count);
    ASSERT_TRUE(line);
    std::optional<std::uint64_t> found;
    const Status read = line->read(3, found);
    ASSERT_FALSE(read) << count;
    EXPECT_THAT(read.error().message, HasSubstr("field 4 is no whole number from 0 on"));
    EXPECT_FALSE(found);
  }
}

}  // namespace
}  // namespace regatta::port_counters
