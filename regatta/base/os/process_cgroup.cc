#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <vector>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

constexpr double kPeriodUs = 10000;
constexpr const char* kMostSharesV1 = "262144";  // MAX_SHARES in kernel/sched/sched.h
constexpr const char* kMostWeightV2 = "10000";   // CGROUP_WEIGHT_MAX in linux/cgroup.h
constexpr double kLeastQuotaUs = 1000;           // min_cfs_quota_period in kernel/sched/core.c

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// The hierarchy that has the cpu controller.
const char* hierarchy_of(CgroupVersion version) {
  return version == CgroupVersion::kV1 ? "cpu" : "";
}

// The folder of `path` below the mount; the mount itself when a container hides the path.
std::string folder_of(const CgroupMount& mount, std::string path) {
  if (mount.root != "/" && path.rfind(mount.root, 0) == 0) path = path.substr(mount.root.size());
  const std::string folder = path == "/" ? mount.point : mount.point + path;
  return exists(folder) ? folder : mount.point;
}

// Making and removing a group is the only sure test of what is allowed.
Status try_out(const CpuCgroupRoot& root) {
  const std::string name = "regatta-try-" + std::to_string(::getpid());
  auto made = make_cpu_group(root, name);
  Status status;
  if (!made) {
    status = made.error();
  } else if (auto limited = make_limited_group(*made, "device", 0.5); !limited) {
    status = limited.error();
  }
  const Status removed = remove_cgroup(root.folder + "/" + name);
  return status ? removed : status;
}

}  // namespace

Result<CpuCgroupRoot> find_cpu_cgroup_root(const std::string& proc) {
  REGATTA_TRY(mountinfo, read_file(proc + "/self/mountinfo"));
  REGATTA_TRY(cgroups, read_file(proc + "/self/cgroup"));
  const auto groups = parse_cgroups(cgroups);
  std::string reason = "no cgroup file system with the cpu controller is mounted";
  for (const CgroupVersion version : {CgroupVersion::kV1, CgroupVersion::kV2}) {
    const auto mount = find_cgroup_mount(mountinfo, hierarchy_of(version));
    if (!mount) continue;
    const std::string own = path_in(groups, hierarchy_of(version)).value_or("/");
    std::vector<std::string> folders = {folder_of(*mount, own)};
    // The top of the hierarchy has no limit above it and suits root best; v2 allows threads of
    // processes from anywhere only below it.
    if (version == CgroupVersion::kV2) folders.insert(folders.begin(), mount->point);
    for (const std::string& folder : folders) {
      const CpuCgroupRoot root{version, folder};
      const Status status = try_out(root);
      if (status) return root;
      reason = status.error().message;
    }
  }
  return Error{Code::kUnsupported, reason};
}

Result<std::string> make_cpu_group(const CpuCgroupRoot& root, const std::string& name) {
  const std::string folder = root.folder + "/" + name;
  if (root.version == CgroupVersion::kV2) {
    REGATTA_TRY_DO(write_file(root.folder + "/cgroup.subtree_control", "+cpu"));
  }
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return errno_error(folder);
  // Against the rest of the machine the group counts as one process unless it weighs more:
  // compilers in the background took two thirds of what eight devices should have had. Where the
  // weight may not be set, the group works without.
  const bool v1 = root.version == CgroupVersion::kV1;
  static_cast<void>(write_file(folder + (v1 ? "/cpu.shares" : "/cpu.weight"),
                               v1 ? kMostSharesV1 : kMostWeightV2));
  return folder;
}

Result<std::string> make_limited_group(const std::string& parent, const std::string& name,
                                       double share) {
  if (!(share > 0 && share <= 1)) {
    return Error{Code::kInvalidInput, name + ": the share of a core must be above 0 and at most 1"};
  }
  const std::string folder = parent + "/" + name;
  if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return errno_error(folder);
  const double period = std::max(kPeriodUs, std::ceil(kLeastQuotaUs / share));
  const std::string period_text = std::to_string(std::lround(period));
  const std::string quota_text = std::to_string(std::lround(period * share));
  if (exists(folder + "/cpu.cfs_period_us")) {
    REGATTA_TRY_DO(write_file(folder + "/cpu.cfs_period_us", period_text));
    REGATTA_TRY_DO(write_file(folder + "/cpu.cfs_quota_us", quota_text));
    return folder;
  }
  // v2: threads, not processes, are members, so the group is turned into a threaded one first;
  // the parent becomes the root of the threaded subtree and may then hand out the controller.
  if (!exists(folder + "/cgroup.type")) {
    return Error{Code::kUnsupported,
                 folder + ": has no cpu controller; enable it in the groups above"};
  }
  REGATTA_TRY_DO(write_file(folder + "/cgroup.type", "threaded"));
  REGATTA_TRY_DO(write_file(parent + "/cgroup.subtree_control", "+cpu"));
  REGATTA_TRY_DO(write_file(folder + "/cpu.max", quota_text + " " + period_text));
  return folder;
}

Status join_cgroup(const std::string& folder) {
  const bool v1 = exists(folder + "/tasks");
  const std::string file = folder + (v1 ? "/tasks" : "/cgroup.threads");
  return write_file(file, std::to_string(::syscall(SYS_gettid)));
}

Status remove_cgroup(const std::string& folder, Seconds timeout) {
  if (!exists(folder)) return {};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.is_directory(ignored)) REGATTA_TRY_DO(remove_cgroup(entry.path(), timeout));
  }
  // A thread that ended leaves its group a moment later.
  const Seconds end = monotonic_now() + timeout;
  while (::rmdir(folder.c_str()) != 0) {
    if (errno == ENOENT) return {};
    if (errno != EBUSY || monotonic_now() > end) return errno_error(folder);
    sleep_for(Seconds{0.01});
  }
  return {};
}

}  // namespace regatta::os
