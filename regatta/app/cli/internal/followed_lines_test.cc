#include "regatta/app/cli/internal/followed_lines.h"

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/file.h"

namespace regatta::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class FollowedLinesTest : public testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  void open() {
    auto lines = FollowedLines::open(path_, 8);
    ASSERT_TRUE(lines) << lines.error().message;
    lines_.emplace(std::move(*lines));
  }
  std::vector<std::string> come() {
    std::vector<std::string> all;
    now_ += Seconds{2};
    EXPECT_TRUE(lines_->read([&](std::string_view line) { all.emplace_back(line); }, now_));
    return all;
  }

  os::TempFolder folder_ = *os::TempFolder::create();
  std::string path_ = folder_.path() + "/lines";
  std::optional<FollowedLines> lines_;
  Seconds now_;
};

TEST_F(FollowedLinesTest, GiveWhatIsWrittenFromNowOn) {
  append("old\nhalf");
  open();
  append(" a line\none\ntw");
  EXPECT_THAT(come(), ElementsAre("one"));
  append("o\n");
  EXPECT_THAT(come(), ElementsAre("two"));
  EXPECT_THAT(come(), IsEmpty());
}

TEST_F(FollowedLinesTest, SayWhetherTheyLeaveOutMoreThanAHeading) {
  for (const auto& [part, leaves_out] :
       {std::pair("", false), {"heading\n", false}, {"old", true}, {"\n", true}}) {
    append(part);
    open();
    EXPECT_EQ(lines_->leaves_out_lines(), leaves_out) << part;
  }
  append("new\n");
  EXPECT_THAT(come(), ElementsAre("new"));
}

TEST_F(FollowedLinesTest, ReadAReplacedFileToItsEndFirst) {
  append("old\n");
  open();
  append("last\n");
  ASSERT_EQ(std::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  append("new\n");
  EXPECT_THAT(come(), ElementsAre("last"));
  EXPECT_THAT(come(), ElementsAre("new"));
}

TEST_F(FollowedLinesTest, FollowAFileThatIsReplacedOrBeginsAnew) {
  append("old, and longer than what comes\n");
  open();
  std::ofstream(path_) << "anew\n";
  EXPECT_THAT(come(), ElementsAre("anew"));
  ASSERT_EQ(std::rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  EXPECT_THAT(come(), IsEmpty());
  append("next\n");
  EXPECT_THAT(come(), ElementsAre("next"));
}

TEST_F(FollowedLinesTest, WaitForTheWritersOfAPipe) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  open();
  EXPECT_THAT(come(), IsEmpty());
  append("one\n");
  EXPECT_THAT(come(), ElementsAre("one"));
  append("two\n");
  EXPECT_THAT(come(), ElementsAre("two"));
}

TEST_F(FollowedLinesTest, GiveALineThatIsTooLongOnceAndCut) {
  append("");
  open();
  append(std::string(100'000, 'x'));
  EXPECT_THAT(come(), ElementsAre("xxxxxxxxx"));
  EXPECT_THAT(come(), IsEmpty());
  append("\nshort\n");
  EXPECT_THAT(come(), ElementsAre("short"));
}

TEST_F(FollowedLinesTest, RefuseWhatHasNoEndAndWhatIsNotThere) {
  for (const std::string& path : {std::string("/dev/zero"), folder_.path()}) {
    const auto refused = FollowedLines::open(path, 8);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr(path + ": cannot be followed; name a file"));
  }
  const auto missing = FollowedLines::open(path_, 8);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kInvalidInput);
  EXPECT_THAT(missing.error().message, HasSubstr("name a file or a pipe"));
}

}  // namespace
}  // namespace regatta::cli
