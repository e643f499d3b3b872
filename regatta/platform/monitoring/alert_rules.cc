#include "regatta/platform/monitoring/alert_rules.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::monitoring {
namespace {

constexpr std::size_t kRuleNameMost = 64;
constexpr double kTimeMost = 30 * 86400.0;

bool is_rule_name(std::string_view name) {
  return !name.empty() && name.size() <= kRuleNameMost &&
         std::all_of(name.begin(), name.end(), [](char letter) {
           return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                  letter == '_' || letter == '-';
         });
}

AlertRule rule(const char* name, AlertKind kind, double after_s, double clear_s, double limit) {
  return {.name = name,
          .kind = kind,
          .after = Seconds{after_s},
          .clear = Seconds{clear_s},
          .limit = limit};
}

}  // namespace

std::vector<AlertRule> default_alert_rules() {
  return {rule("node-silent", AlertKind::kNodeSilent, 10, 30, 0),
          rule("device-failed", AlertKind::kDeviceFailed, 5, 60, 0),
          rule("job-failed", AlertKind::kJobFailed, 0, 0, 0),
          rule("job-restarts", AlertKind::kJobRestarts, 0, 60, 3),
          rule("queue-waiting", AlertKind::kQueueWaiting, 60, 60, 86400),
          rule("device-idle", AlertKind::kDeviceIdle, 1800, 120, 5),
          rule("disk-low", AlertKind::kDiskLow, 10, 60, 0),
          rule("certificate-ends", AlertKind::kCertificateEnds, 60, 60, 2),
          rule("decision-slow", AlertKind::kDecisionSlow, 30, 60, 5)};
}

Result<std::vector<AlertRule>> parse_alert_rules(std::string_view text, std::string_view name) {
  REGATTA_TRY(root, JsonReader::parse(text, name, {.size_max = 1U << 20U, .depth_max = 8}));
  root.allow({"rules"});
  std::vector<AlertRule> rules;
  std::set<std::string> names;
  const auto kinds = sched::choices_of<AlertKind>(kAlertKindNames);
  const NumberRange times{.low = 0, .high = kTimeMost};
  for (const JsonReader& item : root.at("rules").items()) {
    item.allow({"name", "kind", "after_s", "clear_s", "limit", "enabled"});
    AlertRule one;
    item.read("name", one.name);
    item.read("kind", one.kind, kinds);
    item.read_if("after_s", one.after.value, times);
    item.read_if("clear_s", one.clear.value, times);
    item.read_if("limit", one.limit, kNotNegative);
    item.read_if("enabled", one.is_enabled);
    if (!is_rule_name(one.name))
      item.at("name").fail("no name of a rule; use 1 to 64 of a-z, 0-9, '-' and '_'");
    if (!names.insert(one.name).second) item.at("name").fail("another rule has it; choose another");
    rules.push_back(std::move(one));
  }
  if (rules.size() > kAlertRulesMax)
    root.at("rules").fail(fmt::format("more than {} rules; give fewer", kAlertRulesMax));
  return root.finish(std::move(rules));
}

std::string alert_rules_json(const std::vector<AlertRule>& rules) {
  std::string text = "[";
  for (const AlertRule& rule : rules) {
    if (text.size() > 1) text += ',';
    text += R"({"name":)";
    append_json_quoted(rule.name, text);
    text += fmt::format(R"(,"kind":"{}","after_s":{},"clear_s":{},"limit":{},"enabled":{}}})",
                        at(kAlertKindNames, static_cast<int>(rule.kind)), rule.after.value,
                        rule.clear.value, rule.limit, rule.is_enabled);
  }
  return text + "]";
}

}  // namespace regatta::monitoring
