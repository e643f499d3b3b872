#include "regatta/runtime/train/internal/dataset.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/train/test_run.h"

namespace regatta::train {
namespace {

void write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Dataset, ReadsAFolderInTheSortedOrderOfItsPaths) {
  const os::TempFolder folder = test::test_folder();
  write(folder.path() + "/b", "cd");
  write(folder.path() + "/a/z", "ab");
  write(folder.path() + "/c", "e");
  std::filesystem::create_symlink(folder.path() + "/c", folder.path() + "/d");
  std::filesystem::create_symlink(folder.path(), folder.path() + "/loop");
  const auto dataset = load_dataset(folder.path(), 2, 256);
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_EQ(std::string(dataset->bytes.begin(), dataset->bytes.end()), "abcdee");
  EXPECT_EQ(dataset->windows(), 2);
}

TEST(Dataset, ReadsASingleFile) {
  const os::TempFolder folder = test::test_folder();
  write(folder.path() + "/text", "hello");
  const auto dataset = load_dataset(folder.path() + "/text", 4, 128);
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_EQ(dataset->windows(), 1);
  EXPECT_EQ(sample(*dataset, 1, 0), dataset->bytes.data());
}

TEST(Dataset, NamesWhatIsWrong) {
  const os::TempFolder folder = test::test_folder();
  const std::string& path = folder.path();
  EXPECT_EQ(load_dataset(path + "/none", 4, 256).error().message,
            "data " + path + "/none: no such file or folder; correct data.text in the job");
  EXPECT_EQ(load_dataset(path, 4, 256).error().message,
            "data " + path +
                ": 0 bytes are fewer than one sample of seq + 1 = 5; give more text or a smaller "
                "seq");
  write(path + "/text", "abcd\xff");
  EXPECT_EQ(load_dataset(path, 4, 128).error().message,
            "data " + path + ": byte 255 is no token of vocab 128; set vocab to 256");
}

TEST(Dataset, NamesAFileThatBreaksWhileItIsRead) {
  const auto dataset = load_dataset("/proc/self/mem", 4, 256);  // opens, but nothing lies at 0
  ASSERT_FALSE(dataset);
  EXPECT_EQ(dataset.error().code, Code::kInvalidInput);
  EXPECT_EQ(dataset.error().message,
            "data /proc/self/mem: input/output error; make it readable or correct data.text in the "
            "job");
}

TEST(SampleOrder, VisitsEveryWindowOnceInAnEpoch) {
  for (const long long windows : {1, 2, 7, 64, 1000}) {
    for (const long long epoch : {0, 1, 5}) {
      std::set<long long> seen;
      for (long long i = 0; i < windows; ++i)
        seen.insert(window_of(3, epoch * windows + i, windows));
      EXPECT_EQ(static_cast<long long>(seen.size()), windows);
      EXPECT_EQ(*seen.begin(), 0);
      EXPECT_EQ(*seen.rbegin(), windows - 1);
    }
  }
}

TEST(SampleOrder, DependsOnSeedAndEpochAlone) {
  int same_epoch = 0;
  int same_seed = 0;
  for (long long i = 0; i < 1000; ++i) {
    EXPECT_EQ(window_of(3, i, 1000), window_of(3, i, 1000));
    same_epoch += window_of(3, i, 1000) == window_of(3, 1000 + i, 1000);
    same_seed += window_of(3, i, 1000) == window_of(4, i, 1000);
  }
  EXPECT_LT(same_epoch, 10);
  EXPECT_LT(same_seed, 10);
}

}  // namespace
}  // namespace regatta::train
