#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::os {
namespace {

using testing::HasSubstr;

constexpr const char* kHybrid =
    "9:name=systemd:/init.scope\n"
    "2:cpu,cpuacct:/a\n"
    "4:memory:/pod:1/x\n"
    "0::/u/v\n";

TEST(CgroupPath, ReadsEveryHierarchyOfAProcess) {
  const auto groups = parse_cgroups(kHybrid);
  ASSERT_EQ(groups.size(), 5U);
  EXPECT_EQ(path_in(groups, "name=systemd"), "/init.scope");
  EXPECT_EQ(path_in(groups, "cpu"), "/a");
  EXPECT_EQ(path_in(groups, "cpuacct"), "/a");
  EXPECT_EQ(path_in(groups, "memory"), "/pod:1/x");  // a colon of the path's own
  EXPECT_EQ(path_in(groups, ""), "/u/v");
  EXPECT_FALSE(path_in(groups, "pids"));
  EXPECT_TRUE(parse_cgroups("no line of this kind\n\n").empty());
}

TEST(CgroupPath, IsWrittenAndReadBack) {
  for (const CgroupPath& group :
       {CgroupPath{"", "/a/b"}, CgroupPath{"memory", "/a"}, CgroupPath{"name=systemd", "/a:b/c"},
        CgroupPath{"", "/a:/b"}, CgroupPath{"", "/"}}) {
    const auto again = parse_cgroup_path(to_string(group));
    ASSERT_TRUE(again) << to_string(group);
    EXPECT_EQ(*again, group);
  }
}

TEST(CgroupPath, RefusesWhatLeadsElsewhere) {
  for (const char* text : {"", "a", "memory", "memory:a", ":/a", "/a/../b", "/a//b", "/a/", "/./a",
                           "memory:/..", "/a\nb"}) {
    const auto group = parse_cgroup_path(text);
    ASSERT_FALSE(group) << text;
    EXPECT_EQ(group.error().code, Code::kInvalidInput);
    EXPECT_THAT(group.error().message, HasSubstr("memory:/a/b"));
  }
}

TEST(CgroupPath, HoldsItsDescendantsAndNoNeighbours) {
  EXPECT_TRUE(is_within("/a", "/a"));
  EXPECT_TRUE(is_within("/a/b/c", "/a"));
  EXPECT_FALSE(is_within("/ab", "/a"));
  EXPECT_FALSE(is_within("/", "/a"));
  EXPECT_FALSE(is_within("/../a", "/a"));  // outside the reader's cgroup namespace
  EXPECT_TRUE(is_within("/a", "/"));
}

TEST(CgroupFolder, IsBelowTheMountOfItsHierarchy) {
  const auto proc = TempFolder::create().value();
  ASSERT_TRUE(make_folder(proc.path() + "/self"));
  ASSERT_TRUE(write_file(proc.path() + "/self/mountinfo",
                         "30 1 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
                         "31 1 0:27 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                         "32 1 0:28 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"));
  EXPECT_EQ(cgroup_folder({"", "/a"}, proc.path()).value(), "/sys/fs/cgroup/unified/a");
  EXPECT_EQ(cgroup_folder({"", "/"}, proc.path()).value(), "/sys/fs/cgroup/unified");
  EXPECT_EQ(cgroup_folder({"cpuacct", "/a/b"}, proc.path()).value(), "/cg/cpu/a/b");
  EXPECT_EQ(cgroup_folder({"memory", "/docker/x/y"}, proc.path()).value(),
            "/sys/fs/cgroup/memory/y");
  EXPECT_EQ(cgroup_folder({"memory", "/docker/z"}, proc.path()).error().code, Code::kUnsupported);
  EXPECT_EQ(cgroup_folder({"pids", "/a"}, proc.path()).error().code, Code::kUnsupported);
}

TEST(CgroupFolder, OfThisProcessExistsWhereItIsMounted) {
  const auto groups = parse_cgroups(read_file("/proc/self/cgroup").value());
  for (const CgroupPath& group : groups) {
    const auto folder = cgroup_folder(group);
    struct stat status {};
    if (!folder) continue;
    EXPECT_EQ(::stat(folder->c_str(), &status), 0) << *folder;
  }
}

}  // namespace
}  // namespace regatta::os
