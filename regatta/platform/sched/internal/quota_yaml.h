// sched/internal/quota_yaml.h: the queues and quotas of a YAML file.
#pragma once

#include <string_view>
#include <vector>

#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

// The list `key` of `root`; keys of a queue: docs/formats/sched_state.md. Errors stay in the
// document: keys that are not known, amounts that are negative, too large or without a unit.
// QuotaTree::create() checks parents and sums.
std::vector<QuotaQueue> read_queues(const YamlMap& root, std::string_view key);

}  // namespace regatta::sched
