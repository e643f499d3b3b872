#include "regatta/base/core/text.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta {
namespace {

using ::testing::ElementsAre;

TEST(Split, CutsAtEverySeparator) {
  EXPECT_THAT(split("a,b,,c", ','), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(split("", ','), ElementsAre(""));
  EXPECT_THAT(split(",", ','), ElementsAre("", ""));
}

TEST(Join, IsTheInverseOfSplit) {
  EXPECT_EQ(join({"a", "b", "", "c"}, ","), "a,b,,c");
  EXPECT_EQ(join({}, ","), "");
}

TEST(Trim, TakesBlanksFromBothEnds) {
  EXPECT_EQ(trim("  a b\t\n"), "a b");
  EXPECT_EQ(trim("   "), "");
}

TEST(NearestWord, OffersTheClosestWithinThreeEdits) {
  const std::vector<std::string> known = {"spines", "uplink", "tiers"};
  EXPECT_EQ(nearest_word("spine", known), "spines");
  EXPECT_EQ(nearest_word("upink", known), "uplink");
  EXPECT_EQ(nearest_word("somewhere", known), "");
}

TEST(NearestWord, OffersNothingWhenHalfOfTheWordWouldChange) {
  EXPECT_EQ(nearest_word("mi300", {"v100"}), "");
  EXPECT_EQ(nearest_word("h100", {"v100", "h100-sxm"}), "h100-sxm");
  EXPECT_EQ(nearest_word("h10", {"v100", "h100-sxm"}), "");
  EXPECT_EQ(nearest_word("x", {"y"}), "");
}

TEST(NearestWord, GivesUpOnEndlessWords) {
  EXPECT_EQ(nearest_word(std::string(1 << 20, 'a'), {"spines"}), "");
}

TEST(Printable, HidesControlCharactersAndCuts) {
  EXPECT_EQ(printable("a\x1b[31mb\n", 60), "a?[31mb?");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("caf\u00e9 \xff\xc3 (", 60), "caf\u00e9 ?? (");
  EXPECT_EQ(printable("abc", 3), "abc");
}

TEST(FormatTable, AlignsNumbersToTheRight) {
  EXPECT_EQ(format_table({{"name", "steps"}, {"a", "5"}, {"long", "100"}}),
            "name  steps\n"
            "a         5\n"
            "long    100\n");
}

}  // namespace
}  // namespace regatta
