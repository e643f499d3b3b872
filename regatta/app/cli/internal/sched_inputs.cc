#include "regatta/app/cli/internal/sched_inputs.h"

#include <filesystem>

#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/base/core/yaml_map.h"

namespace regatta::cli {

Result<sched::SchedulerState> load_state(const std::string& path) {
  REGATTA_TRY(text, read_named_file(path, kYamlMaxBytes));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return sched::parse_state(
      text, path, [&](const std::string& name) { return load_cluster((folder / name).string()); });
}

Result<sched::SchedulingPolicy> load_policy(const std::string& name_or_path,
                                            std::optional<double> interference) {
  // A name has neither a folder nor an ending.
  if (name_or_path.find_first_of("/.") == std::string::npos) {
    REGATTA_TRY(policy, sched::find_scheduling_policy(name_or_path));
    if (interference) policy.interference = *interference;
    return policy;
  }
  REGATTA_TRY(text, read_named_file(name_or_path, kYamlMaxBytes));
  return sched::parse_scheduling_policy(text, name_or_path, interference);
}

}  // namespace regatta::cli
