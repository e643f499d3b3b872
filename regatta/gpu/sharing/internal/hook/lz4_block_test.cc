#include "regatta/gpu/sharing/internal/hook/lz4_block.h"

#include <random>

#include <gtest/gtest.h>

namespace regatta::sharing::hook {
namespace {

constexpr std::uint64_t kMost = 1 << 20;

TEST(Lz4Block, DecodesLiteralsAndWhatRepeats) {
  EXPECT_EQ(decode_lz4(std::string("\x50hello", 6), 5, kMost), "hello");
  // "ab", then 6 bytes from 2 before, which overlap.
  EXPECT_EQ(decode_lz4(std::string("\x22"
                                   "ab\x02\x00",
                                   5),
                       8, kMost),
            "abababab");
  // 15 and 3 literals: the length goes on in a byte. Padding follows.
  EXPECT_EQ(decode_lz4("\xf0\x03" + std::string(18, 'x') + std::string(5, '\0'), 18, kMost),
            std::string(18, 'x'));
  EXPECT_EQ(decode_lz4("", 0, kMost), "");
}

TEST(Lz4Block, RefusesWhatIsNone) {
  EXPECT_FALSE(decode_lz4("", 1, kMost));
  EXPECT_FALSE(decode_lz4("\x50hell", 5, kMost));  // ends too soon
  EXPECT_FALSE(decode_lz4(std::string("\x12"
                                      "a\x02\x00",
                                      4),
                          9, kMost));  // from before the beginning
  EXPECT_FALSE(decode_lz4(std::string("\x12"
                                      "a\x00\x00",
                                      4),
                          9, kMost));
  EXPECT_FALSE(decode_lz4(std::string("\x1f"
                                      "a\x01\x00\xff\xff\xff\x00",
                                      8),
                          20, kMost));
  EXPECT_FALSE(decode_lz4("\x50hello", 5, 4));  // more than is allowed
}

TEST(Lz4Block, ReturnsNothingOrAsManyBytesAsExpectedOfAnyBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random());
    const std::uint64_t expected = random() % 300;
    const auto made = decode_lz4(bytes, expected, 200);
    EXPECT_EQ(made.value_or(std::string(expected, '\0')).size(), expected);
  }
}

}  // namespace
}  // namespace regatta::sharing::hook
