#include "regatta/platform/node_agent/internal/rank_log.h"

#include <gmock/gmock.h>

#include "regatta/base/os/file.h"

namespace regatta::node_agent {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class RankLogTest : public testing::Test {
 protected:
  std::string all(std::int64_t offset = 0) {
    std::string text;
    for (;;) {
      const auto bytes = read_log(run_, 0, offset, 1000);
      EXPECT_TRUE(bytes);
      if (!bytes || bytes->data.empty()) return text;
      text += bytes->data;
      offset = bytes->offset + static_cast<std::int64_t>(bytes->data.size());
    }
  }
  os::TempFolder folder_ = os::TempFolder::create().value();
  std::string run_ = folder_.path();
};

TEST_F(RankLogTest, GivesWhatWasWrittenFromAnyPlace) {
  RankLogWriter log(run_, 0, 8192);
  log.write("one\n");
  log.write("two\n");
  EXPECT_EQ(all(), "one\ntwo\n");
  EXPECT_EQ(all(4), "two\n");
  EXPECT_EQ(all(8), "");
  EXPECT_TRUE(log_segments(run_, 1).empty());
}

TEST_F(RankLogTest, KeepsTwoFilesAndSaysHowMuchItDropped) {
  RankLogWriter log(run_, 0, 4096);
  for (int i = 0; i < 4096; ++i)
    log.write("0123456789abcdef");  // 64 KiB in all
  const std::vector<LogSegment> segments = log_segments(run_, 0);
  ASSERT_THAT(segments, SizeIs(2));
  EXPECT_LE(segments[0].size + segments[1].size, 2 * 4096);
  const std::string text = all();
  EXPECT_THAT(text, HasSubstr("bytes of this log were dropped before]"));
  // A place that is gone gives what follows it, and says where that begins.
  EXPECT_EQ(read_log(run_, 0, 0, 10)->offset, segments[0].begin);
  EXPECT_GT(segments[0].begin, 50'000);
}

}  // namespace
}  // namespace regatta::node_agent
