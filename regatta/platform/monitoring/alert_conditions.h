// monitoring/alert_conditions.h: which conditions of the alert rules hold in the cluster now. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/control/cluster_tables.h"
#include "regatta/platform/monitoring/alert_book.h"
#include "regatta/platform/monitoring/alert_rules.h"

namespace regatta::monitoring {

// Facts that are not in the tables, or would take long to find there.
struct ClusterFacts {
  bool is_disk_low = false;
  Seconds decision_time;                // of the latest one
  std::int64_t certificate_end_ms = 0;  // of the controller; 0: not known
  // Jobs whose devices were measured in the latest step: their use in percent.
  std::map<control::JobId, double> job_use = {};
  // When the oldest job of each queue that waits, and is not held, was submitted.
  std::map<std::string, std::int64_t> oldest_ms = {};
  // Those that failed within the last ten minutes, and those that started again after a failure and
  // are not over.
  std::set<control::JobId> failed_jobs = {};
  std::set<control::JobId> restarted_jobs = {};
};

// `kFailedJobTime`: how long the failure of a job counts as a condition.
inline constexpr Seconds kFailedJobTime{600};

std::vector<AlertCondition> find_conditions(const std::vector<AlertRule>& rules,
                                            const control::ClusterTables& tables,
                                            const ClusterFacts& facts, std::int64_t unix_ms);

}  // namespace regatta::monitoring
