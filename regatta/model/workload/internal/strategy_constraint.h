// workload/internal/strategy_constraint.h: conditions on the keys of a strategy that a search
// keeps: "pp <= 8", "zero in {0, 1}". Part of workload/strategy.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::workload {

struct Strategy;
struct StrategyRequest;

enum class ConstraintRelation { kAtMost, kAtLeast, kIn, kNot };

struct StrategyConstraint {
  std::string key;  // of a Strategy, as job files write it
  ConstraintRelation relation = ConstraintRelation::kIn;
  // One number, or with kIn at least one, ascending. The words of a key count from 0, false and
  // true are 0 and 1.
  std::vector<int> values;

  friend bool operator==(const StrategyConstraint&, const StrategyConstraint&) = default;
};

// KEY RELATION VALUE, with <=, >=, <, >, =, != or "in {VALUE, ...}"; relations of order are for
// numbers. kInvalidInput begins with `origin` and names the key, the reason and the remedy.
Result<StrategyConstraint> parse_constraint(std::string_view text, std::string_view origin);
// As parse_constraint() reads it: "pp <= 8", "recompute in {none, full}".
std::string to_string(const StrategyConstraint& constraint);

bool admits(const StrategyConstraint& constraint, const Strategy& strategy);
bool admits(const std::vector<StrategyConstraint>& constraints, const Strategy& strategy);

// kInvalidInput names a constraint that excludes what the request itself gives for the key.
Status check_constraints(const StrategyRequest& request);

}  // namespace regatta::workload
