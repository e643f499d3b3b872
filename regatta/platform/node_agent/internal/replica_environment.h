// node_agent/internal/replica_environment.h: the variables that the ranks of a replica see. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "regatta/platform/control/node.h"

namespace regatta::node_agent {

struct EnvironmentFacts {
  std::string user = "root";
  std::string home = "/";
  std::string node = {};
  std::string device_type = {};  // other than "cpu": CUDA_VISIBLE_DEVICES is set
  std::string run = {};          // the replica's folder
  std::string address = {};      // of the node, for others
  std::string interface = {};    // of that address; "": not known
  int leaf = 0;                  // of the node in the fabric
  int group = 0;
  std::string host_file = {};  // with host_list(); "": none
};

// "0,3" for 0b1001.
std::string device_list(std::uint32_t devices);

// The gang as a hostfile of OpenMPI, a line "ADDRESS slots=RANKS" for each replica; "" where the
// order has no hosts. Source: OpenMPI, mpirun(1), --hostfile.
std::string host_list(const control::ReplicaOrder& order);

// All variables but RANK and LOCAL_RANK: PATH, HOME and the like, which the job may replace; its
// own; and those of the gang, as PyTorch's env:// has them, which it may not, except for
// MASTER_PORT: a port from 20000 to 29999 that differs between the attempts of jobs. Source:
// PyTorch, torch.distributed, Environment variable initialization.
std::vector<std::pair<std::string, std::string>> replica_environment(
    const control::ReplicaOrder& order, const EnvironmentFacts& facts);

// The name of the variable whose value is the run folder: it marks the processes of a replica.
inline constexpr const char* kRunVariable = "REGATTA_RUN";
// Its devices, as a list.
inline constexpr const char* kDevicesVariable = "REGATTA_DEVICES";

}  // namespace regatta::node_agent
