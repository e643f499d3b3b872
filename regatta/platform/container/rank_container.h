// container/rank_container.h: a rank that is to run in a container: what its agent hands to the
// program that starts it, as a file that root alone reads. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::container {

inline constexpr const char* kContainerProgram = "regatta-container";

struct RankContainer {
  std::string image;  // folder of a root file system, or an OCI layout
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  // but for that of the rank
  std::string working_folder;                                    // on the node and in the container
  bool is_read_only = false;                                     // the root file system
  std::vector<std::string> mounts;       // folders and files of the node, at the same place inside
  std::vector<std::string> own_mounts;   // the same, of the platform: need no right of the user
  std::vector<std::string> cdi_devices;  // "nvidia.com/gpu=0"
  unsigned uid = 0;
  unsigned gid = 0;
  std::vector<unsigned> groups;
  std::string run;    // folder of the replica
  std::string store;  // folder of unpacked images
  std::string name;   // of the replica's containers: regatta-NODE-JOB.ATTEMPT.REPLICA
};

std::string encode(const RankContainer& request);
// kInvalidInput names the key.
Result<RankContainer> decode_rank_container(std::string_view text);

// The file in the replica's folder.
std::string request_path(const std::string& run);

}  // namespace regatta::container
