#include "regatta/base/os/memory.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "regatta/base/os/file.h"

namespace regatta::os {
namespace {

class FreeMemory : public testing::Test {
 protected:
  FreeMemory() : folder_(*TempFolder::create()) {}
  void write(const std::string& path, const std::string& text) const {
    const std::string whole = folder_.path() + path;
    ASSERT_TRUE(make_folder(std::filesystem::path(whole).parent_path()));
    ASSERT_TRUE(write_file(whole, text));
  }
  long long found() const { return free_memory(folder_.path()).value; }

  TempFolder folder_;
};

TEST_F(FreeMemory, IsTheLeastOfWhatMachineAndGroupLeave) {
  EXPECT_EQ(found(), 0);
  write("/proc/meminfo", "MemTotal:       2000 kB\nMemAvailable:    1000 kB\nBuffers: 5 kB\n");
  EXPECT_EQ(found(), 1000 * 1024);
  write("/sys/fs/cgroup/memory.max", "max\n");
  write("/sys/fs/cgroup/memory.current", "100000\n");
  EXPECT_EQ(found(), 1000 * 1024);
  write("/sys/fs/cgroup/memory.max", "300000\n");
  EXPECT_EQ(found(), 200'000);
  write("/sys/fs/cgroup/memory.max", "99999\n");
  EXPECT_EQ(found(), 1);
}

TEST_F(FreeMemory, CountsFilesThatAGroupReadOnceAsFree) {
  write("/sys/fs/cgroup/memory.max", "300000\n");
  write("/sys/fs/cgroup/memory.current", "290000\n");
  write("/sys/fs/cgroup/memory.stat", "anon 40000\ninactive_anon 7\ninactive_file 200000\n");
  EXPECT_EQ(found(), 210'000);
  write("/sys/fs/cgroup/memory.stat", "anon 40000\n");
  EXPECT_EQ(found(), 10'000);
}

TEST_F(FreeMemory, IsLeftByTheLimitOfTheProcess) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer reserves more addresses than this limit leaves";
#endif
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "the address space is limited already";
  const rlimit limit{.rlim_cur = 1ULL << 45U, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  write("/proc/self/statm", "1000 1 1 1 0 1 0\n");
  const long long left = found();
  ::setrlimit(RLIMIT_AS, &before);
  EXPECT_GT(left, 1LL << 44U);
  EXPECT_LT(left, 1LL << 45U);
}

TEST(FreeMemoryHere, IsSome) {
  EXPECT_GT(free_memory().value, 1 << 20);
}

TEST(ResidentMemory, IsThatOfAProcessAndNothingOnceItIsGone) {
  EXPECT_GT(resident_memory(::getpid()), Bytes{100'000});
  EXPECT_EQ(resident_memory(-1), Bytes{0});
}

}  // namespace
}  // namespace regatta::os
