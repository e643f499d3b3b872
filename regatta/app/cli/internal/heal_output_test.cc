#include "regatta/app/cli/internal/heal_output.h"

#include <array>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace regatta::cli {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends.data()), 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  std::string read() const {
    std::string text(1 << 20, '\0');
    const ssize_t count = ::read(ends[0], text.data(), text.size());
    return text.substr(0, count < 0 ? 0 : static_cast<std::size_t>(count));
  }

  std::array<int, 2> ends{};
};

TEST(OutputQueue, WritesAtOnceWhereSomebodyReads) {
  const Pipe pipe;
  OutputQueue queue(pipe.ends[1], 100);
  queue.push("one\n");
  queue.push("two\n");
  EXPECT_GE(queue.fd(), 0);
  queue.flush();
  EXPECT_EQ(queue.fd(), -1);
  EXPECT_EQ(pipe.read(), "one\ntwo\n");
  EXPECT_EQ(queue.consume_dropped(), 0U);
}

// Else this test does not end.
TEST(OutputQueue, WaitsForNobodyAndCountsWhatHasNoRoom) {
  const Pipe pipe;
  OutputQueue queue(pipe.ends[1], 100'000);
  std::string expected;
  for (int i = 0; i < 30; ++i) {
    const std::string line = std::string(10'000, static_cast<char>('a' + i % 26)) + "\n";
    queue.push(line);
    queue.flush();
    EXPECT_EQ(queue.consume_dropped(), 0U) << "lines before it wait";
    expected += line;
  }
  std::string text;
  while (queue.fd() >= 0) {
    text += pipe.read();
    queue.flush();
  }
  const std::size_t dropped = queue.consume_dropped();
  EXPECT_GT(dropped, 5U);
  EXPECT_LT(dropped, 25U);
  EXPECT_EQ(queue.consume_dropped(), 0U);
  queue.push("after\n");
  queue.flush();
  text += pipe.read();
  if (text.size() < 6 || text.substr(text.size() - 6) != "after\n") text += pipe.read();
  EXPECT_EQ(text, expected.substr(0, (30 - dropped) * 10'001) + "after\n");
}

}  // namespace
}  // namespace regatta::cli
