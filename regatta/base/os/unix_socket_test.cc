#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/socket.h"

namespace regatta::os {
namespace {

using testing::HasSubstr;

class UnixSocket : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = TempFolder::create("unix");
    ASSERT_TRUE(folder);
    folder_.emplace(std::move(*folder));
    path_ = folder_->path() + "/socket";
  }

  std::optional<TempFolder> folder_;
  std::string path_;
};

TEST_F(UnixSocket, CarriesWhatIsSentToItsPath) {
  const auto listener = listen_unix(path_);
  ASSERT_TRUE(listener) << listener.error().message;
  const auto one = connect_unix(path_);
  ASSERT_TRUE(one) << one.error().message;
  const UniqueFd other(::accept(listener->get(), nullptr, nullptr));
  ASSERT_EQ(::write(one->get(), "news", 4), 4);
  std::array<char, 8> block{};
  ASSERT_EQ(::read(other.get(), block.data(), block.size()), 4);
  EXPECT_EQ(std::string(block.data()), "news");
}

TEST_F(UnixSocket, IsRefusedWhereNobodyListens) {
  const auto nothing = connect_unix(path_);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Code::kNotFound);
  EXPECT_EQ(nothing.error().message, path_ + ": no such file or directory");
  ASSERT_TRUE(listen_unix(path_));  // and ends at once: its name stays
  const auto left = connect_unix(path_);
  ASSERT_FALSE(left);
  EXPECT_EQ(left.error().code, Code::kUnavailable);
}

TEST_F(UnixSocket, TakesThePlaceOfOneThatIsDeadAndOfNothingElse) {
  ASSERT_TRUE(listen_unix(path_));
  const auto listener = listen_unix(path_);
  ASSERT_TRUE(listener) << listener.error().message;
  const auto second = listen_unix(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);
  EXPECT_TRUE(connect_unix(path_)) << "the first one still listens";

  const std::string file = folder_->path() + "/file";
  ASSERT_TRUE(write_file(file, "mine"));
  const auto over_file = listen_unix(file);
  ASSERT_FALSE(over_file);
  EXPECT_THAT(over_file.error().message, HasSubstr("something that is no socket lies here"));
  EXPECT_EQ(*read_file(file), "mine");
}

TEST_F(UnixSocket, LeavesThePlaceOfWhoIsStoppedOrOfAnotherType) {
  const auto stopped = listen_unix(path_);
  ASSERT_TRUE(stopped);
  std::vector<UniqueFd> waiting;  // until its backlog is full
  auto one = connect_unix(path_);
  for (; one && waiting.size() < 1000; one = connect_unix(path_))
    waiting.push_back(std::move(*one));
  ASSERT_FALSE(one) << "waits for a second, and no longer";
  EXPECT_EQ(one.error().code, Code::kUnavailable);
  EXPECT_THAT(one.error().message, HasSubstr("takes no connection for a second"));
  const auto second = listen_unix(path_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kConflict);

  const std::string other = folder_->path() + "/packets";
  const auto packets = listen_unix(other, SOCK_SEQPACKET);
  ASSERT_TRUE(packets);
  const auto stream = listen_unix(other);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, Code::kConflict);
  EXPECT_TRUE(connect_unix(other, SOCK_SEQPACKET)) << "it still listens";
}

TEST_F(UnixSocket, HasANameOfLimitedLength) {
  EXPECT_TRUE(unix_address(std::string(107, 'x')));
  for (const std::string& path : {std::string(), std::string(108, 'x')}) {
    const auto address = unix_address(path);
    ASSERT_FALSE(address);
    EXPECT_EQ(address.error().code, Code::kInvalidInput);
    EXPECT_FALSE(connect_unix(path));
    EXPECT_FALSE(listen_unix(path));
  }
}

}  // namespace
}  // namespace regatta::os
