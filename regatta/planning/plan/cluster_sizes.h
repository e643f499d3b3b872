// plan/cluster_sizes.h: how many servers of a cluster a job is worth: the fastest plan on each of
// some numbers of them, what the job uses there, which of them are worth a look, and which one an
// objective picks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimated_plan_search.h"
#include "regatta/planning/plan/resource_usage.h"

namespace regatta::plan {

enum class Objective { kTime, kCost, kDevices, kMemory };
std::vector<std::string> objective_names();  // "time", "cost", "devices", "memory"
std::optional<Objective> objective_named(std::string_view name);
std::string to_string(Objective objective);

struct ClusterSizesOptions {
  int steps = 0;     // of the job; 0: not known, usage is that of 1e9 tokens
  double price = 0;  // of a device and hour
  int threads = 1;
};

struct ClusterSize {
  int servers = 0;
  int devices = 0;
  EstimatedPlan plan;
  double tokens_per_s = 0;  // of all devices
  double mfu = 0;
  double efficiency = 1;    // tokens of a device, over those at the smallest size
  ResourceUsage usage;      // of ClusterSizes::tokens
  bool is_optimal = false;  // no other size takes less time for as many device hours, or fewer of
                            // them in as much time
};

// The servers are too few for the job, or do not divide it.
struct SkippedSize {
  int servers = 0;
  std::string reason;
};

struct ClusterSizes {
  double tokens = 0;               // that usage is of
  int steps = 0;                   // the same, where the job says how many
  std::vector<ClusterSize> sizes;  // ascending; at least one
  std::vector<SkippedSize> left_out;
};

// 1 to `most` where these are eight at most; else powers of two, what lies in the middle between
// them (3, 6, 12 ...), and `most`. Ascending.
std::vector<int> server_counts(int most);

// The problem on each of server_counts() of its servers, the first of the cluster in rank order.
// Fails with kInvalidInput, and says what search_estimated_plans() says of all servers, where no
// number of them has a plan that fits.
Result<ClusterSizes> plan_cluster_sizes(const PlanningProblem& problem,
                                        const ClusterSizesOptions& options);

// Index into sizes.sizes: fastest, cheapest, smallest, or least memory a device; of equals, that of
// the fewest devices. Fails with kInvalidInput where `within` is given and no size ends in it.
Result<std::size_t> select_size(const ClusterSizes& sizes, Objective objective,
                                std::optional<Seconds> within = std::nullopt);

}  // namespace regatta::plan
