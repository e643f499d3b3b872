#include "regatta/base/core/json_line.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

TEST(JsonLine, HasTheDigitsThatMeanSomething) {
  EXPECT_EQ(json_line({{"seconds", 0.1 + 0.2}}), R"({"seconds":0.3})");
  EXPECT_EQ(json_line({{"us", {63.812345678, 0.00001234567891, -1.0 / 3}}}),
            R"({"us":[63.8123,1.23457e-05,-0.333333]})");
}

TEST(JsonLine, KeepsTheMillisecondsOfATimeSince1970) {
  EXPECT_EQ(json_line({{"at_s", 1763889123.3371234}}), R"({"at_s":1763889123.337})");
  EXPECT_EQ(json_line({{"at_s", 61987.33712}}), R"({"at_s":61987.337})");
}

TEST(JsonLine, LeavesWhatIsNoFractionAsItIs) {
  EXPECT_EQ(json_line({{"count", 12345678901}, {"whole", 5.0}, {"text", "0.30000000000000004"}}),
            R"({"count":12345678901,"text":"0.30000000000000004","whole":5.0})");
  EXPECT_EQ(json_line(nlohmann::json::array({std::numeric_limits<double>::infinity()})), "[null]");
}

TEST(JsonLine, MendsTextThatWasCutWithinALetter) {
  EXPECT_EQ(json_line({{"why", "a\xc3"}}), "{\"why\":\"a\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace regatta
