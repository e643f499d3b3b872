// topo/cluster_yaml.h: reads and validates the cluster file (docs/formats/cluster.md).
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::topo {

// The bounds of a cluster file.
inline constexpr int kMaxServers = 32768;  // planned for; kMaxStartedServers of them are started
inline constexpr int kMaxDevicesPerServer = 64;
inline constexpr long long kMaxLinks = 1'000'000;

// The cluster that `text` describes, complete: presets filled in, servers named, fabric consistent
// (build_graph() works on it and every server reaches every other). `file` names it in messages.
// Fails with kInvalidInput naming file, line, key and remedy.
Result<Cluster> parse_cluster(std::string_view text, const std::string& file);

}  // namespace regatta::topo
