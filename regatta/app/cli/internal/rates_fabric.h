// cli/internal/rates_fabric.h: the fabric whose rates a command is about: that of a lab, or that of
// a cluster file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/lab/lab.h"
#include "regatta/network/link_rates/switch_counters.h"

namespace regatta::cli {

struct RatesFabric {
  std::string name;
  std::optional<lab::LabInfo> lab;
  topo::Graph graph;
  std::vector<std::uint32_t> seeds;  // by NodeId, of the switches' hashes
};

// kInvalidInput unless exactly one of the two is given.
Result<RatesFabric> find_rates_fabric(const std::string& cluster_file, const std::string& lab);

// Adds the readings of a file (docs/formats/switch_counters.md), "-": of standard input until it
// ends or the user stops. kInvalidInput names the file and the line.
Status read_switch_counters(const std::string& path, link_rates::SwitchCounterTotals& totals);

}  // namespace regatta::cli
