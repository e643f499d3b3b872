#include "regatta/network/probe/internal/line_splitter.h"

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::probe {
namespace {

using testing::ElementsAre;

// What comes out of `bytes` in pieces of the sizes that `random` draws; the last is the error.
std::vector<std::string> lines_of(std::string_view bytes, std::size_t longest, std::mt19937& random,
                                  std::size_t most) {
  LineSplitter lines(longest);
  std::vector<std::string> all;
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(1 + random() % most, bytes.size());
    const Status status = lines.add(bytes.substr(0, size), [&](std::string_view line) -> Status {
      all.emplace_back(line);
      if (line == "stop") return Error{Code::kInvalidInput, "stopped"};
      return {};
    });
    if (!status) {
      all.push_back("! " + status.error().message);
      return all;
    }
    bytes.remove_prefix(size);
  }
  return all;
}

TEST(LineSplitter, ComeOutWholeHoweverTheirBytesComeIn) {
  std::mt19937 random(1);
  EXPECT_THAT(lines_of("one\n\nthree\nrest", 8, random, 100), ElementsAre("one", "", "three"));
  EXPECT_THAT(lines_of("one\n\nthree\nrest", 8, random, 1), ElementsAre("one", "", "three"));
}

TEST(LineSplitter, ThatAreTooLongAreRefusedBeforeTheyEnd) {
  std::mt19937 random(1);
  const std::string error = "! a line is longer than the 4 bytes of any prober";
  EXPECT_THAT(lines_of("1234\n12345\nx\n", 4, random, 100), ElementsAre("1234", error));
  EXPECT_THAT(lines_of(std::string(1000, 'x'), 4, random, 3), ElementsAre(error));
}

TEST(LineSplitter, EndWithTheFirstErrorOfWhoTakesThem) {
  std::mt19937 random(1);
  EXPECT_THAT(lines_of("a\nstop\nb\n", 8, random, 100), ElementsAre("a", "stop", "! stopped"));
}

TEST(LineSplitter, OfAnyBytesAreTheSameInAnyPieces) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    std::string bytes;
    for (std::size_t left = random() % 400; left > 0; --left)
      bytes += random() % 7 == 0 ? '\n' : static_cast<char>(random() % 256);
    const std::size_t longest = 1 + random() % 40;
    const auto whole = lines_of(bytes, longest, random, 1000);
    for (const std::size_t most : {1U, 3U, 50U})
      ASSERT_EQ(lines_of(bytes, longest, random, most), whole) << "seed " << seed;
    for (const std::string& line : whole) {
      if (line.starts_with("! ")) continue;
      ASSERT_LE(line.size(), longest);
    }
  }
}

}  // namespace
}  // namespace regatta::probe
