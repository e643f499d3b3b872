#include <filesystem>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/file.h"

namespace regatta::os {
namespace {

std::size_t entries_of(const std::string& folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(StagedFile, IsNotSeenBeforeItIsPublished) {
  const auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/text";
  ASSERT_TRUE(write_file(path, "old"));
  auto staged = StagedFile::stage(path, "new");
  ASSERT_TRUE(staged);
  EXPECT_TRUE(staged->is_plain());
  EXPECT_EQ(*read_file(path), "old");
  ASSERT_TRUE(staged->publish());
  EXPECT_EQ(*read_file(path), "new");
  EXPECT_EQ(entries_of(folder->path()), 1U);
}

TEST(StagedFile, LeavesNothingWhereItIsDropped) {
  const auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  { ASSERT_TRUE(StagedFile::stage(folder->path() + "/text", "new")); }
  EXPECT_EQ(entries_of(folder->path()), 0U);
}

TEST(StagedFile, IsForItsOwnerAloneWhereTheUmaskSaysSo) {
  const auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const auto mode_under = [&](mode_t mask) {
    const std::string path = folder->path() + "/text";
    const mode_t before = ::umask(mask);
    const bool is_written = write_file_atomically(path, "secret").has_value();
    EXPECT_EQ(::umask(before), mask);
    struct stat state {};
    return is_written && ::stat(path.c_str(), &state) == 0 ? state.st_mode & 0777U : 0U;
  };
  EXPECT_EQ(mode_under(0077), 0600U);
  EXPECT_EQ(mode_under(0022), 0644U);
}

TEST(StagedFile, ThatIsWrittenBitByBitIsNotSeenBeforeItIsPublished) {
  const auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/text";
  {
    const auto dropped = StagedFile::begin(path);
    ASSERT_TRUE(dropped && write_file(dropped->writing_path(), "half"));
  }
  EXPECT_EQ(entries_of(folder->path()), 0U);
  auto staged = StagedFile::begin(path);
  ASSERT_TRUE(staged && write_file(staged->writing_path(), "all"));
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(staged->publish());
  EXPECT_EQ(*read_file(path), "all");
  EXPECT_EQ(entries_of(folder->path()), 1U);
  auto device = StagedFile::begin("/dev/full");
  ASSERT_TRUE(device);
  EXPECT_EQ(device->writing_path(), "/dev/full");
  EXPECT_TRUE(device->publish()) << "it has been written into already";
}

TEST(StagedFile, OfADeviceIsWrittenWhenItIsPublished) {
  auto full = StagedFile::stage("/dev/full", "x");
  ASSERT_TRUE(full);
  EXPECT_FALSE(full->is_plain());
  EXPECT_FALSE(full->publish());
}

TEST(StagedFile, ReplacesWhatALinkNames) {
  const auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string link = folder->path() + "/link";
  ASSERT_EQ(::symlink("file", link.c_str()), 0);
  auto staged = StagedFile::stage(link, "new");
  ASSERT_TRUE(staged);
  ASSERT_TRUE(staged->publish());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(*read_file(folder->path() + "/file"), "new");
}

TEST(StagedFile, ThatCannotBeWrittenNamesItsPlace) {
  const auto staged = StagedFile::stage("/proc/none/file", "x");
  ASSERT_FALSE(staged);
  EXPECT_EQ(staged.error().message, "/proc/none/file: no such file or directory");
  const auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string link = folder->path() + "/link";
  ASSERT_EQ(::symlink("link", link.c_str()), 0);
  EXPECT_FALSE(StagedFile::stage(link, "x"));
}

}  // namespace
}  // namespace regatta::os
