// sharing/internal/daemon/test_cgroup.h: for tests: a cgroup of their own, where this user may make
// one.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"

namespace regatta::sharing {

class TestCgroup {
 public:
  // Nothing when no hierarchy of this version can be written.
  static std::optional<TestCgroup> create(os::CgroupVersion version) {
    static int count = 0;
    const auto own = os::read_file("/proc/self/cgroup");
    if (!own) return std::nullopt;
    const std::string name =
        "regatta-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    for (os::CgroupPath group : os::parse_cgroups(*own)) {
      if (group.hierarchy.empty() != (version == os::CgroupVersion::kV2)) continue;
      group.path += (group.path == "/" ? "" : "/") + name;
      const auto folder = os::cgroup_folder(group);
      if (!folder || ::mkdir(folder->c_str(), 0755) != 0) continue;
      // Some hierarchies take no process before they are set up; try it with one that ends.
      if (can_join(*folder)) return TestCgroup(group, *folder);
      static_cast<void>(os::remove_cgroup(*folder).has_value());
    }
    return std::nullopt;
  }
  TestCgroup(TestCgroup&& other) noexcept
      : group_(std::move(other.group_)), folder_(std::exchange(other.folder_, "")) {}
  TestCgroup& operator=(TestCgroup&&) = delete;
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;
  ~TestCgroup() { remove(); }

  std::string name() const { return os::to_string(group_); }
  const os::CgroupPath& group() const { return group_; }
  const std::string& folder() const { return folder_; }
  bool make() const { return ::mkdir(folder_.c_str(), 0755) == 0; }
  void remove() const {
    if (!folder_.empty()) static_cast<void>(os::remove_cgroup(folder_, Seconds{10.0}).has_value());
  }
  // Moves the calling process into the group, or into one below it.
  bool join(const std::string& below = "") const {
    const std::string folder = folder_ + (below.empty() ? "" : "/" + below);
    ::mkdir(folder.c_str(), 0755);
    return os::write_file(folder + "/cgroup.procs", std::to_string(::getpid())).has_value();
  }

 private:
  TestCgroup(os::CgroupPath group, std::string folder)
      : group_(std::move(group)), folder_(std::move(folder)) {}

  static bool can_join(const std::string& folder) {
    const int status = wait_status(start_process([&] {
      return os::write_file(folder + "/cgroup.procs", std::to_string(::getpid())) ? 0 : 1;
    }));
    return status == 0;
  }

  os::CgroupPath group_;
  std::string folder_;
};

}  // namespace regatta::sharing
