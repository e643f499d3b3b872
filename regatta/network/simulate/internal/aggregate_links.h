// simulate/internal/aggregate_links.h: each aggregate link stands for the links of like ranks: each
// of these carries the bytes that bundles send over it, besides its other traffic.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "regatta/network/fabric/traffic.h"
#include "regatta/network/simulate/internal/scenario_workload.h"

namespace regatta::simulate {

class AggregateLinks {
 public:
  // Adds the aggregate links to `links`, which already has those of the network.
  AggregateLinks(const ScenarioWorkload& workload, fabric::Links& links);

  // The aggregate link for a representative NIC link (RankClasses::representative_nic), or for the
  // link out of or into the first rank of a group.
  std::uint32_t of(std::uint32_t link) const { return number_of_.at(link); }
  // The same; null where `link` is not such a link.
  const std::uint32_t* find(std::uint32_t link) const {
    const auto at = number_of_.find(link);
    return at == number_of_.end() ? nullptr : &at->second;
  }
  // Each aggregate link with a link that it stands for.
  const std::vector<std::pair<std::uint32_t, std::uint32_t>>& all() const { return all_; }

 private:
  void add(std::uint32_t first, std::uint32_t link, fabric::Links& links);

  std::unordered_map<std::uint32_t, std::uint32_t> number_of_;
  std::unordered_set<std::uint32_t> is_told_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all_;
};

}  // namespace regatta::simulate
