#include "experimental/remote/internal/serve.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta::remote {
namespace {

void write_file(const std::string& path, const std::string& text, mode_t mode) {
  std::ofstream(path) << text << '\n';
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

// A file that others may write takes the name of the token again and again.
TEST(ReadToken, ReadsTheFileThatItExamined) {
  std::string folder = ::testing::TempDir() + "token.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string token = folder + "/token";
  const std::string other = folder + "/other";
  write_file(token, "a token of the operator", 0600);
  write_file(other, "a token of somebody else", 0666);
  std::atomic<bool> stop = false;
  std::thread exchange([&] {
    while (!stop)
      ASSERT_EQ(::renameat2(AT_FDCWD, token.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE), 0);
  });
  int wrong = 0;
  int right = 0;
  for (int i = 0; i < 100000 && wrong == 0; ++i) {
    const auto read = read_token(token);
    if (read) ++(*read == "a token of the operator" ? right : wrong);
  }
  stop = true;
  exchange.join();
  std::filesystem::remove_all(folder);
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, 0);
}

}  // namespace
}  // namespace regatta::remote
