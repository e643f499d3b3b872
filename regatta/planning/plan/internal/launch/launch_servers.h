// plan/internal/launch/launch_servers.h: the lines of a shell script that say which server has
// which ranks, and through which NICs it sends.
#pragma once

#include <string>
#include <vector>

#include "regatta/planning/plan/internal/launch/launch_script.h"

namespace regatta::plan {

// How a script that runs on every server is started there, for its head. `file` names the script.
std::vector<std::string> start_notes(const LaunchInput& input, const std::string& file);

// The servers as an array in the order of their node ranks; a first argument that prints them; this
// server's node rank, where srun starts the script; and the end of the script where an address or a
// rank is missing. One server needs neither.
std::string node_rank_lines(const LaunchInput& input);

// The hostfile of DeepSpeed's launcher, unless HOSTFILE names another.
std::string hostfile_lines(const LaunchInput& input);

// NCCL's NICs in the order of the rails.
std::string nic_lines(const LaunchInput& input);
// "=mlx5_0,mlx5_1"; "" where they are not known, or one server needs none.
std::string nic_names(const LaunchInput& input);

// torchrun's flags for equal servers, of which each runs the script.
FlagArray torchrun_flags(const LaunchInput& input);

}  // namespace regatta::plan
