#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::os {
namespace {

TEST(Cgroup, HoldsOneThreadToItsShareOnly) {
  const auto root = find_cpu_cgroup_root();
  if (!root) GTEST_SKIP() << "no cpu groups here: " << root.error().message;
  const std::string name = "regatta-test-" + std::to_string(::getpid());
  const auto parent = make_cpu_group(*root, name);
  ASSERT_TRUE(parent) << parent.error().message;
  const auto group = make_limited_group(*parent, "device0", 0.2);
  ASSERT_TRUE(group) << group.error().message;
  double share = 0;
  std::thread([&] {
    if (!join_cgroup(*group)) return;
    const double start = monotonic_now().value;
    const double cpu = thread_cpu_time().value;
    while (monotonic_now().value < start + 0.4) {
    }
    share = (thread_cpu_time().value - cpu) / (monotonic_now().value - start);
  }).join();
  EXPECT_GT(share, 0.05);  // other processes may take the core away, but never give more
  EXPECT_LT(share, 0.26);
  ASSERT_TRUE(remove_cgroup(*parent));
  EXPECT_FALSE(read_file(*parent + "/tasks"));
  ASSERT_TRUE(remove_cgroup(*parent));
}

TEST(Cgroup, RejectsAnImpossibleShare) {
  EXPECT_EQ(make_limited_group("/nonexistent", "a", 0).error().code, Code::kInvalidInput);
  EXPECT_EQ(make_limited_group("/nonexistent", "a", 1.5).error().code, Code::kInvalidInput);
}

TEST(CgroupRoot, SaysWhyThereIsNone) {
  auto folder = TempFolder::create();
  ASSERT_TRUE(folder);
  ASSERT_TRUE(make_folder(folder->path() + "/self"));
  ASSERT_TRUE(write_file(folder->path() + "/self/mountinfo",
                         "24 1 0:22 / /proc rw,nosuid - proc proc rw\n"));
  ASSERT_TRUE(write_file(folder->path() + "/self/cgroup", "0::/\n"));
  const auto root = find_cpu_cgroup_root(folder->path());
  ASSERT_FALSE(root);
  EXPECT_EQ(root.error().code, Code::kUnsupported);
  EXPECT_EQ(root.error().message, "no cgroup file system with the cpu controller is mounted");
}

}  // namespace
}  // namespace regatta::os
