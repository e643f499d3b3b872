// cli/internal/local_cluster.h: the controller and the agents of the platform as background
// processes of this machine: which ones there are, how they start, and how all of them end.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::cli {

// A process as it was started; the pid with the start time names it for good.
struct LocalProcess {
  std::string name;  // "controller", or the node of an agent
  pid_t pid = -1;
  unsigned long long start_time = 0;
};

inline constexpr const char* kControllerName = "controller";

// The record in the state folder of the processes that were started for it.
struct LocalCluster {
  std::string url;            // of its controller, or of the one that its agents have joined
  int devices = -1;           // of each agent; -1: those that are found
  std::string device_memory;  // of each emulated device, such as 16GiB; "": none
  std::string gpu_daemon;     // socket; "": none
  std::vector<LocalProcess> processes;
  std::vector<std::string> cgroups;  // that agents make, by their folders

  const LocalProcess* find(const std::string& name) const;
  bool is_running(const std::string& name) const;
};

// $XDG_STATE_HOME/regatta, below ~/.local/state without the variable.
std::string default_state_folder();

// The name of the agent `index` of the folder. Two folders of one machine have nodes of different
// names, so that their cgroups do not meet.
std::string local_node_name(const std::string& state, int index);

// Holds the state folder for one command at a time; makes it (mode 0700). kConflict when another
// command holds it.
Result<os::UniqueFd> hold_state_folder(const std::string& folder);

// An empty one where the folder has none.
Result<LocalCluster> load_local_cluster(const std::string& folder);
Status save_local_cluster(const std::string& folder, const LocalCluster& cluster);

// The program `argv` in the background, named `name` from now on in `cluster`, which is saved. It
// outlives this process; what it prints is added to FOLDER/NAME.log.
Status start_local_process(const std::string& folder, const std::string& name,
                           const std::vector<std::string>& argv,
                           const std::vector<std::string>& environment, LocalCluster& cluster);
// An error with the last line of its log where the process has ended.
Status check_local_process(const std::string& folder, const std::string& name,
                           const LocalCluster& cluster);

// The cgroups that the agent of node `name` makes when this process starts it, whether they are
// there or not.
std::vector<std::string> cgroups_of_agent(const std::string& name);

// SIGTERM, then SIGKILL after `grace`; whether it ran. Returns when it is gone.
Result<bool> end_local_process(const LocalProcess& process, Seconds grace);
// Ends what replicas below the folder have left: supervisors, then processes that they made.
// Returns how many; kTimeout when some cannot be ended.
Result<int> end_replicas(const std::string& folder);

}  // namespace regatta::cli
