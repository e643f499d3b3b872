#include <algorithm>
#include <random>
#include <vector>

#include <gmock/gmock.h>

#include "regatta/base/core/text.h"

namespace regatta {
namespace {

using testing::ElementsAre;

// The lines of `bytes` when they come in pieces of at most `piece_max` bytes, and what is left.
std::vector<std::string> lines_of(std::string_view bytes, std::size_t line_max,
                                  std::size_t piece_max, unsigned seed = 1) {
  std::mt19937 random(seed);
  LineSplitter splitter(line_max);
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), 1 + random() % piece_max);
    splitter.append(bytes.substr(0, size));
    bytes.remove_prefix(size);
    while (auto line = splitter.next())
      lines.push_back(*std::move(line));
  }
  lines.push_back(splitter.take_rest());
  return lines;
}

TEST(LineSplitter, GivesLinesHoweverTheyWereCut) {
  for (const std::size_t piece : {1U, 3U, 100U})
    EXPECT_THAT(lines_of("abc\n\nde\nf", 8, piece), ElementsAre("abc", "", "de", "f"));
}

TEST(LineSplitter, GivesALineThatIsTooLongInPiecesBeforeItEnds) {
  EXPECT_THAT(lines_of("1234\n12345\n", 4, 100), ElementsAre("1234", "12345", "", ""));
  EXPECT_THAT(lines_of("123456789", 4, 100), ElementsAre("12345", "6789"));
  EXPECT_THAT(lines_of("1234567\nx\n", 4, 1), ElementsAre("12345", "67", "x", ""));
  EXPECT_TRUE(LineSplitter(4).is_too_long("12345"));
  EXPECT_FALSE(LineSplitter(4).is_too_long("1234"));
}

TEST(LineSplitter, TakesANewLimitFromTheNextLineOn) {
  LineSplitter splitter(4);
  splitter.append("1234\n12345678\n");
  EXPECT_EQ(splitter.next(), "1234");
  splitter.set_line_max(8);
  EXPECT_EQ(splitter.next(), "12345678");
}

TEST(LineSplitter, GivesTheSameWhateverThePieces) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::string bytes;
    for (std::size_t left = random() % 400; left > 0; --left)
      bytes += random() % 7 == 0 ? '\n' : static_cast<char>(random() % 256);
    const std::size_t line_max = 1 + random() % 40;
    const auto whole = lines_of(bytes, line_max, 1000);
    for (const std::size_t piece : {1U, 3U, 50U})
      ASSERT_EQ(lines_of(bytes, line_max, piece, seed), whole) << "seed " << seed;
    for (const std::string& line : whole)
      ASSERT_LE(line.size(), line_max + 1);
  }
}

}  // namespace
}  // namespace regatta
