// cli/internal/cluster_file.h: the cluster file that nearly every command reads, and what is said
// where the user has named a file that cannot be read.
#pragma once

#include <cstddef>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::cli {

// kInvalidInput, with a remedy, when the file cannot be read, is no text or holds more than `most`
// bytes.
Result<std::string> read_named_file(const std::string& path, std::size_t most);

// Whether a line of `text` starts with `key`: tells a job from a cluster before either is parsed.
bool has_key(const std::string& text, const std::string& key);

// The cluster of the file `path`. kInvalidInput when the file cannot be read, else see
// parse_cluster().
Result<topo::Cluster> load_cluster(const std::string& path);

}  // namespace regatta::cli
