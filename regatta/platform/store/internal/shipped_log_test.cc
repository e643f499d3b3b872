#include "regatta/platform/store/internal/shipped_log.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/platform/store/test_records.h"

namespace regatta::store {
namespace {

using testing::HasSubstr;

// Three commits: revisions 1, 2 to 3, 4.
std::vector<std::string> test_commits() {
  return {encode_commit(0, std::vector{put("job/1", 1, "a")}),
          encode_commit(1, std::vector{removal("job/1", 2), put("job/2", 3, "\n")}),
          encode_commit(3, std::vector{put("job/2", 4, "")})};
}

std::string test_log() {
  std::string text;
  for (const std::string& commit : test_commits())
    text += commit;
  return text;
}

struct ReadLog {
  std::vector<Revision> last;  // of each commit
  bool is_cut = false;
  Status status;
};

ReadLog read_log(const std::string& text) {
  ShippedLogReader reader(text, "log");
  ReadLog log;
  for (;;) {
    const auto commit = reader.next();
    if (!commit) log.status = commit.error();
    log.is_cut = reader.is_cut();
    if (!commit || !*commit) return log;
    log.last.push_back((*commit)->changes.back().revision);
  }
}

TEST(ShippedLog, GivesBackTheCommits) {
  const std::string text = test_log();
  ShippedLogReader reader(text, "log");
  EXPECT_EQ((*reader.next())->changes[0].value, "a");
  const ShippedCommit second = **reader.next();
  EXPECT_EQ(second.previous, 1);
  ASSERT_EQ(second.changes.size(), 2U);
  EXPECT_EQ(second.changes[0].key, "job/1");
  EXPECT_FALSE(second.changes[0].value);
  EXPECT_EQ(second.changes[1].revision, 3);
  EXPECT_EQ(second.changes[1].value, "\n");
  EXPECT_EQ((*reader.next())->changes[0].value, "");
  EXPECT_FALSE(*reader.next());
  EXPECT_FALSE(reader.is_cut());
  EXPECT_EQ(reader.position(), text.size());
}

TEST(ShippedLog, EndsBeforeACommitThatIsCutOffAnywhere) {
  const std::vector<std::string> commits = test_commits();
  const std::size_t whole = commits[0].size() + commits[1].size();
  for (std::size_t size = whole + 1; size < test_log().size(); ++size) {
    const ReadLog log = read_log(test_log().substr(0, size));
    ASSERT_TRUE(log.status);
    EXPECT_THAT(log.last, testing::ElementsAre(1, 3));
    EXPECT_TRUE(log.is_cut);
  }
}

// A file system may have given the file its size before its data.
TEST(ShippedLog, EndsBeforeZerosAtItsEnd) {
  const ReadLog log = read_log(test_log() + std::string(5000, '\0'));
  ASSERT_TRUE(log.status);
  EXPECT_THAT(log.last, testing::ElementsAre(1, 3, 4));
  EXPECT_TRUE(log.is_cut);
}

TEST(ShippedLog, NamesADamagedCommitThatOthersFollow) {
  const std::vector<std::string> commits = test_commits();
  const std::size_t start = commits[0].size();
  for (std::size_t at = start; at < start + commits[1].size(); ++at) {
    std::string text = test_log();
    text[at] = static_cast<char>(text[at] ^ 0x10);
    const ReadLog log = read_log(text);
    ASSERT_FALSE(log.status) << at;
    EXPECT_EQ(log.status.error().code, Code::kInvalidInput);
    EXPECT_THAT(log.status.error().message,
                HasSubstr("log: the commit at byte " + std::to_string(start) + " is damaged"));
    EXPECT_THAT(log.last, testing::ElementsAre(1));
  }
}

TEST(ShippedLog, RefusesContentThatNoStoreWrites) {
  for (const std::vector<Change>& changes : {std::vector{put("", 5, "a")},
                                             {put("job/1", 4, "a")},
                                             {put("job/1", 6, "a"), put("b", 6, "")},
                                             {put(std::string(kKeyMost + 1, 'k'), 5, "a")},
                                             {put(std::string("a\0b", 3), 5, "a")},
                                             {}})
    EXPECT_FALSE(read_log(encode_commit(4, changes)).status);
}

}  // namespace
}  // namespace regatta::store
