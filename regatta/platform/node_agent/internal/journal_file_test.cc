#include "regatta/platform/node_agent/internal/journal_file.h"

#include <gmock/gmock.h>

#include "regatta/base/os/file.h"

namespace regatta::node_agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

JournalEntry entry(control::JobId job, EntryPhase phase = EntryPhase::kStarted) {
  return {.key = {.job = job, .attempt = 1, .replica = 2},
          .fence = job + 100,
          .phase = phase,
          .exit_status = 3,
          .signal = 4,
          .is_node_fault = true};
}

class JournalFileTest : public testing::Test {
 protected:
  JournalFile opened(const std::string& boot = "boot-1") {
    auto file = JournalFile::open(path_, boot);
    EXPECT_TRUE(file) << file.error().message;
    return std::move(*file);
  }
  os::TempFolder folder_ = os::TempFolder::create().value();
  std::string path_ = folder_.path() + "/journal";
};

TEST_F(JournalFileTest, KeepsItsEntriesAndItsName) {
  JournalFile first = opened();
  const std::vector<JournalEntry> entries = {entry(1), entry(2), entry(1, EntryPhase::kOver)};
  ASSERT_TRUE(first.append(entries));
  JournalFile second = opened();
  EXPECT_EQ(second.id(), first.id());
  EXPECT_FALSE(second.is_of_earlier_boot());
  EXPECT_THAT(second.take_entries(), ElementsAre(entry(1, EntryPhase::kOver), entry(2)));
}

TEST_F(JournalFileTest, SaysWhenTheMachineWasStartedAnew) {
  EXPECT_FALSE(opened("boot-1").is_of_earlier_boot());
  EXPECT_TRUE(opened("boot-2").is_of_earlier_boot());
  EXPECT_FALSE(opened("boot-2").is_of_earlier_boot());
}

TEST_F(JournalFileTest, AcceptsAnEndThatWasCutOffAtAnyByte) {
  ASSERT_TRUE(opened().append(std::vector<JournalEntry>{entry(1)}));
  const std::string whole = *os::read_file(path_);
  ASSERT_TRUE(opened().append(std::vector<JournalEntry>{entry(2)}));
  const std::string longer = *os::read_file(path_);
  ASSERT_GT(longer.size(), whole.size());
  for (std::size_t size = whole.size(); size < longer.size(); ++size) {
    const auto content = parse_journal(longer.substr(0, size), "journal");
    ASSERT_TRUE(content) << size << ": " << content.error().message;
    EXPECT_THAT(content->entries, ElementsAre(entry(1))) << size;
    EXPECT_EQ(content->whole_bytes, whole.size());
  }
  // A line that is written after such an end is read again.
  ASSERT_TRUE(os::write_file(path_, longer.substr(0, longer.size() - 3)));
  ASSERT_TRUE(opened().append(std::vector<JournalEntry>{entry(3)}));
  EXPECT_THAT(opened().take_entries(), ElementsAre(entry(1), entry(3)));
}

TEST_F(JournalFileTest, NamesALineThatIsDamagedInTheMiddle) {
  ASSERT_TRUE(opened().append(std::vector<JournalEntry>{entry(1), entry(2)}));
  const std::string text = *os::read_file(path_);
  std::size_t in_line_3 = text.find('\n', text.find('\n') + 1) + 12;
  std::string damaged = text;
  damaged[in_line_3] ^= 1;
  const auto content = parse_journal(damaged, path_);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, Code::kInvalidInput);
  EXPECT_THAT(content.error().message, HasSubstr("line 3"));
  EXPECT_THAT(content.error().message, HasSubstr(path_));
}

TEST_F(JournalFileTest, DropsLinesThatDoNotCountAnyMore) {
  JournalFile file = opened();
  for (control::JobId job = 1; job <= 600; job += 30) {
    std::vector<JournalEntry> lives;
    for (const EntryPhase phase : {EntryPhase::kStarted, EntryPhase::kOver, EntryPhase::kForgotten})
      for (int i = 0; i < 30; ++i)
        lives.push_back(entry(job + i, phase));
    ASSERT_TRUE(file.append(lives));
  }
  EXPECT_LT(os::read_file(path_)->size(), 60'000U);  // 1,800 lines of some 40 bytes are more
  ASSERT_TRUE(file.append(std::vector<JournalEntry>{entry(1000)}));
  EXPECT_THAT(opened().take_entries(), ElementsAre(entry(1000)));
}

}  // namespace
}  // namespace regatta::node_agent
