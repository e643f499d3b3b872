#include "regatta/platform/packing/placement_policy.h"

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::packing {
namespace {

std::vector<PlacementPolicy> known_policies() {
  return {{.name = "random", .rule = PlacementRule::kRandom, .weights = {}},
          {.name = "best_fit", .rule = PlacementRule::kBestFit, .weights = {}},
          {.name = "fgd", .rule = PlacementRule::kFgd, .weights = {}},
          {.name = "regatta",
           .rule = PlacementRule::kWeighted,
           .typical_share = 1,
           .arrivals_ahead = 64,
           .weights = {.device_free = 0.02, .cpu_short = 0.2, .cpu_free = 0.02, .pool_price = 1}}};
}

}  // namespace

std::vector<std::string> placement_policy_names() {
  std::vector<std::string> names;
  for (const PlacementPolicy& policy : known_policies())
    names.push_back(policy.name);
  return names;
}

Result<PlacementPolicy> find_placement_policy(std::string_view name) {
  for (const PlacementPolicy& policy : known_policies())
    if (policy.name == name) return policy;
  return Error{Code::kInvalidInput,
               fmt::format("policy '{}' is not known; choose one of {}", printable(name, 40),
                           join(placement_policy_names(), ", "))};
}

}  // namespace regatta::packing
