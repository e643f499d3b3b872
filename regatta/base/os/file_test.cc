#include "regatta/base/os/file.h"

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace regatta::os {
namespace {

TEST(File, IsReadBackAsItWasWritten) {
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/text";
  const std::string text(100000, 'x');
  ASSERT_TRUE(write_file_atomically(path, text));
  EXPECT_EQ(*read_file(path), text);
  ASSERT_TRUE(write_file(path, ""));
  EXPECT_EQ(*read_file(path), "");
}

TEST(File, ThatIsMissingIsNotFound) {
  const auto text = read_file("/proc/none/file");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::kNotFound);
  EXPECT_EQ(text.error().message, "/proc/none/file: no such file or directory");
  EXPECT_FALSE(write_file_atomically("/proc/none/file", "x"));
}

TEST(File, OfProcIsReadWhole) {
  const auto text = read_file("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("VmSize"), std::string::npos);
}

TEST(File, ThatIsADeviceOrALinkStaysOne) {
  ASSERT_TRUE(write_file_atomically("/dev/null", "gone"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string link = folder->path() + "/link";
  const std::string file = folder->path() + "/file";
  ASSERT_EQ(::symlink("file", link.c_str()), 0);
  for (const char* text : {"new", "again"}) {
    ASSERT_TRUE(write_file_atomically(link, text));
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    const auto read = read_file(file);
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, text);
  }
}

TEST(File, ThatHasNoRoomIsReported) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  auto* before = std::signal(SIGXFSZ, SIG_IGN);
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const rlimit small{.rlim_cur = 10, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string path = folder->path() + "/text";
  const Status plain = write_file(path + "1", std::string(11, 'x'));
  const Status atomic = write_file_atomically(path, std::string(11, 'x'));
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().message, path + "1: file too large");
  ASSERT_FALSE(atomic);
  EXPECT_EQ(atomic.error().message, path + ": file too large");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(File, WithoutAnEndIsNotReadOn) {
  const auto endless = read_file("/dev/zero", 1000);
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, Code::kInvalidInput);
  EXPECT_EQ(endless.error().message, "/dev/zero: holds more than 1000 bytes, or has no end");
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/text";
  ASSERT_TRUE(write_file(path, std::string(1000, 'x')));
  EXPECT_TRUE(read_file(path, 1000));
  EXPECT_FALSE(read_file(path, 999));
}

TEST(File, WithAByteZeroIsNoText) {
  const auto endless = read_text_file("/dev/zero");
  ASSERT_FALSE(endless);
  EXPECT_EQ(endless.error().code, Code::kInvalidInput);
  EXPECT_EQ(endless.error().message, "/dev/zero: is no text: a byte of it is 0");
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/text";
  const std::string text(100'000, 'x');
  ASSERT_TRUE(write_file(path, text));
  EXPECT_EQ(*read_text_file(path), text);
  EXPECT_FALSE(read_text_file(path, 99'999));
  ASSERT_TRUE(write_file(path, text + '\0'));
  EXPECT_FALSE(read_text_file(path));
}

TEST(File, WrittenAtomicallyLeavesNothingBeside) {
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  ASSERT_TRUE(write_file_atomically(folder->path() + "/a", "1"));
  ASSERT_TRUE(write_file_atomically(folder->path() + "/a", "2"));
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder->path())) {
    ++count;
  }
  EXPECT_EQ(count, 1);
}

TEST(MemoryFile, HoldsItsTextFromItsBeginning) {
  const std::string text(300000, 'x');
  const auto file = memory_file("plan", text);
  ASSERT_TRUE(file);
  const std::string path = "/proc/self/fd/" + std::to_string(file->get());
  EXPECT_EQ(*read_file(path), text);
  char first = 0;
  EXPECT_EQ(::read(file->get(), &first, 1), 1) << "its position is its beginning";
  EXPECT_EQ(std::filesystem::read_symlink(path), "/memfd:plan (deleted)");
  const auto empty = memory_file("nothing");
  ASSERT_TRUE(empty);
  ASSERT_TRUE(write_all_at(empty->get(), "yz", 3, "nothing"));
  ASSERT_TRUE(write_all_at(empty->get(), "x", 2, "nothing"));
  EXPECT_EQ(*read_file("/proc/self/fd/" + std::to_string(empty->get())), std::string("\0\0xyz", 5));
}

TEST(MemoryFile, ThatCannotBeWrittenIsReported) {
  const Status written = write_all_at(-1, "x", 0, "plan");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "plan: bad file descriptor");
  const auto file = memory_file(std::string(300, 'x'));
  EXPECT_FALSE(file);
}

TEST(Folder, IsMadeWithItsParentsAndMode) {
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/a/b";
  ASSERT_TRUE(make_folder(path, 0700));
  ASSERT_TRUE(make_folder(path, 0700));
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST(MakeFolder, GivesTheReasonOfTheFailureItself) {
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  const std::string path = folder->path() + "/a";
  ASSERT_EQ(::symlink("/proc/none", path.c_str()), 0);
  const Status made = make_folder(path, 0700);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().message, path + ": file exists");
}

TEST(TempFolder, VanishesWithItsContent) {
  std::string path;
  {
    auto folder = TempFolder::create();
    ASSERT_TRUE(folder);
    path = folder->path();
    ASSERT_TRUE(write_file(path + "/a", "1"));
    const TempFolder moved = *std::move(folder);
    EXPECT_TRUE(std::filesystem::exists(path + "/a"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace regatta::os
