#include <thread>

#include <gmock/gmock.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/socket.h"

namespace regatta::os {
namespace {

using testing::ElementsAre;

constexpr std::size_t kMost = 8;

class LineReading : public testing::Test {
 protected:
  void SetUp() override {
    auto pipe = make_pipe();
    ASSERT_TRUE(pipe);
    reader_.emplace(std::move(pipe->read_end), "pipe", kMost);
    writing_ = std::move(pipe->write_end);
  }
  void write(std::string_view text) {
    ASSERT_EQ(::write(writing_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::vector<std::string> all() {
    std::vector<std::string> lines;
    for (auto line = reader_->next(stop_); line && *line; line = reader_->next(stop_))
      lines.push_back(**line);
    return lines;
  }
  std::optional<LineReader> reader_;
  UniqueFd writing_;
  std::atomic<bool> stop_ = false;
};

TEST_F(LineReading, GivesEachLineOnceItIsThere) {
  write("one\n\ntw");
  EXPECT_EQ(*reader_->next(stop_), "one");
  EXPECT_EQ(*reader_->next(stop_), "");
  write("o\nlast");
  writing_.reset();
  EXPECT_THAT(all(), ElementsAre("two", "last"));
  EXPECT_EQ(*reader_->next(stop_), std::nullopt);
}

TEST_F(LineReading, CutsALineThatIsTooLong) {
  write("12345678\n123456789\n123456789012345");
  writing_.reset();
  EXPECT_THAT(all(), ElementsAre("12345678", "123456789", "", "123456789", "012345"));
}

TEST_F(LineReading, EndsSoonOnceItIsToldTo) {
  write("one\nhalf a");
  std::thread later([this] {
    ::usleep(20'000);
    stop_ = true;
  });
  EXPECT_THAT(all(), ElementsAre("one"));
  later.join();
}

TEST(LineReader, NamesWhatItCannotRead) {
  const auto folder = LineReader::open("/proc", kMost);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().message, "/proc: is a directory");
  EXPECT_FALSE(LineReader::open("/proc/none/file", kMost));
}

TEST(LineReader, ReadsAFileOfManyLines) {
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/lines";
  std::string text;
  for (int i = 0; i < 50'000; ++i)
    text += std::to_string(i) + "\n";
  ASSERT_TRUE(write_file(path, text));
  auto reader = LineReader::open(path, kMost);
  ASSERT_TRUE(reader);
  const std::atomic<bool> stop = false;
  int count = 0;
  for (auto line = reader->next(stop); line && *line; line = reader->next(stop))
    ASSERT_EQ(**line, std::to_string(count++));
  EXPECT_EQ(count, 50'000);
}

}  // namespace
}  // namespace regatta::os
