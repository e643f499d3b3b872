// lab/internal/state.h: what a lab leaves on disk: /run/regatta/NAME/state.json (or
// $XDG_RUNTIME_DIR/regatta, or /tmp/regatta-UID), mode 0700. Written by the holder, read by all.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {

struct NodeState {
  std::string name;
  int holder_fd = -1;             // /proc/HOLDER/fd/N is the namespace
  unsigned long long inode = 0;   // as processes in it show; may be used again once it is gone
  unsigned long long cookie = 0;  // its identity for ever
};

struct LabState {
  LabInfo info;
  unsigned long long holder_start = 0;  // with info.holder, the identity of the holder
  std::string boot_id;
  std::string cgroup;            // "" = none
  bool join_cgroup = false;      // processes join `cgroup` when they start
  std::string description;       // as in Blueprint
  bool ready = false;            // false while the holder builds
  std::vector<NodeState> nodes;  // as in Blueprint
};

// Folder of all labs of this user, created when missing. Fails with kConflict when another user
// owns it.
Result<std::string> runtime_folder();
Result<std::string> lab_folder(const std::string& name);

// One change of labs at a time on this machine and user; held until the descriptor is closed.
Result<os::UniqueFd> lock_labs();
// Nothing when another process changes labs right now.
Result<os::UniqueFd> try_lock_labs();

Status save_state(const LabState& state);
// kNotFound when there is no lab of that name, kUnavailable when its state cannot be read.
Result<LabState> load_state(const std::string& name);
std::vector<std::string> state_names();

bool holder_is_alive(const LabState& state);

// The state of the living lab behind `info`; kUnavailable when its holder has died.
Result<LabState> living_state(const LabInfo& info);

nlohmann::json to_json(const LabInfo& info);
LabInfo read_info(const JsonReader& json);

}  // namespace regatta::lab
