// packing/placement_policy.h: how a node is chosen among those where a pod fits, as data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::packing {

enum class PlacementRule {
  kRandom,   // any node and GPU where the pod fits
  kBestFit,  // least free CPU and GPU afterwards; the GPU with the least free share
  kFgd,      // fragmentation gradient descent with its integer score; ties go to the lowest index
  kWeighted  // least weighted sum of the terms below, as real numbers; ties go to the lowest index
};

// Weights of kWeighted beside the growth of the fragment, whose weight is 1. The terms are in GPUs.
struct PlacementWeights {
  double device_free = 0;  // free share of the chosen GPU afterwards, for pods on one GPU
  double cpu_short = 0;    // growth of the free GPU share that has no CPU left for a mean request
  double cpu_free = 0;     // 100 cores that are free on the node afterwards
  double pool_price = 0;   // price of the GPU and CPU taken, by the expected demand for such nodes
};

struct PlacementPolicy {
  std::string name;
  PlacementRule rule = PlacementRule::kRandom;
  double typical_share = 0.95;  // typical pods are the most frequent ones that make up this share
  // 0: a free GPU counts as usable by each typical pod that fits, as FGD defines it. Otherwise as
  // what it takes in the mean when so many pods come for it.
  int arrivals_ahead = 0;
  PlacementWeights weights;
};

// The names of the policies that come with regatta: random, best_fit, fgd, regatta.
std::vector<std::string> placement_policy_names();

// Fails with kInvalidInput and the known names.
Result<PlacementPolicy> find_placement_policy(std::string_view name);

}  // namespace regatta::packing
