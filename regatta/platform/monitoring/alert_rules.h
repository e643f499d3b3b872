// monitoring/alert_rules.h: the rules by which something in the cluster becomes an alert:
// docs/formats/api.md, part Alerts. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::monitoring {

enum class AlertKind {
  kNodeSilent,
  kDeviceFailed,
  kJobFailed,
  kJobRestarts,   // limit: restarts after a failure
  kQueueWaiting,  // limit: seconds that its oldest job waits
  kDeviceIdle,    // limit: percent of use of a job's devices
  kDiskLow,
  kCertificateEnds,  // limit: days until then
  kDecisionSlow      // limit: seconds that a decision took
};
inline constexpr EnumNames<9> kAlertKindNames = {
    "node_silent", "device_failed", "job_failed",       "job_restarts", "queue_waiting",
    "device_idle", "disk_low",      "certificate_ends", "decision_slow"};

struct AlertRule {
  std::string name;  // 1 to 64 of a-z, 0-9, '_', '-'
  AlertKind kind = AlertKind::kNodeSilent;
  Seconds after;  // it holds for so long before there is an alert
  Seconds clear;  // it does not hold for so long before the alert is resolved
  double limit = 0;
  bool is_enabled = true;

  bool operator==(const AlertRule&) const = default;
};

inline constexpr std::size_t kAlertRulesMax = 100;
// The key of the record that keeps them.
inline constexpr std::string_view kAlertRulesKey = "observed/alert_rules";

// One of each kind; those until an operator sets others.
std::vector<AlertRule> default_alert_rules();
// {"rules": [...]}. kInvalidInput names `name`, the key and the remedy.
Result<std::vector<AlertRule>> parse_alert_rules(std::string_view text, std::string_view name);
std::string alert_rules_json(const std::vector<AlertRule>& rules);

}  // namespace regatta::monitoring
