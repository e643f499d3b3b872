#include "regatta/base/core/internal/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace regatta {
namespace {

TEST(Utf8, CountsTheBytesOfLetters) {
  EXPECT_EQ(utf8_sequence_length("a"), 1U);
  EXPECT_EQ(utf8_sequence_length("\u00e9t"), 2U);
  EXPECT_EQ(utf8_sequence_length("\u20ac"), 3U);
  EXPECT_EQ(utf8_sequence_length("\U0001F600"), 4U);
  EXPECT_EQ(utf8_sequence_length(""), 0U);
}

TEST(Utf8, RefusesWhatIsNoLetter) {
  for (const char* text : {"\xff", "\x80", "\xc3", "\xc3(", "\xc0\xaf", "\xe0\x80\x80",
                           "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf0\x80\x80\x80", "\xe2\x82"})
    EXPECT_EQ(utf8_sequence_length(text), 0U) << text;
}

TEST(Utf8, FindsTheFirstByteThatIsOfNoLetter) {
  EXPECT_EQ(utf8_valid_prefix("plain"), 5U);
  EXPECT_EQ(utf8_valid_prefix("caf\u00e9"), 5U);
  EXPECT_EQ(utf8_valid_prefix("ab\xff"), 2U);
  EXPECT_EQ(utf8_valid_prefix(std::string("a\0b", 3)), 3U);
}

}  // namespace
}  // namespace regatta
