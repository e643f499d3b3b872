// container/container_config.h: the configuration of a container for runc: OCI runtime
// specification 1.0.2, config.md. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/platform/container/rank_container.h"

namespace regatta::container {

// A folder or file of the node, as it was opened with the rights of its user.
struct BoundPath {
  std::string source;  // where it is now
  std::string inside;  // where the container sees it
  bool is_read_only = false;
};

struct ContainerRoot {
  std::string path;                            // prepared root file system
  std::vector<std::string> image_environment;  // "PATH=/usr/bin", of the image
  std::vector<BoundPath> bound;
};

struct RankNumbers {
  int rank = 0;
  int local_rank = 0;
};

// The container of a rank: the node's network, processes and shared memory, its own root; as the
// job's user without any capability or way to more rights.
nlohmann::json container_config(const RankContainer& request, const ContainerRoot& root,
                                const RankNumbers& numbers);
// The name of the rank's container.
std::string container_name(const RankContainer& request, int local_rank);

// Applies the edits of "KIND=NAME" to a configuration, from one of the CDI documents.
// kNotFound where none has the device; kInvalidInput for edits of another form. Source: Container
// Device Interface 0.6.0.
Status apply_cdi_device(const std::vector<nlohmann::json>& documents, std::string_view device,
                        nlohmann::json& config);

}  // namespace regatta::container
