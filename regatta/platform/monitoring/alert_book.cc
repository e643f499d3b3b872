#include "regatta/platform/monitoring/alert_book.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/yaml_map.h"

namespace regatta::monitoring {
namespace {

constexpr std::string_view kAlerts = "observed/alert/";

std::string alert_record(const Alert& alert) {
  std::string text = alert_json(alert);
  text.pop_back();
  return text + fmt::format(R"(,"firing_told":{},"resolved_told":{}}})", alert.is_firing_told,
                            alert.is_resolved_told);
}

Result<Alert> read_alert(std::string_view text) {
  REGATTA_TRY(root, JsonReader::parse(text, "store: alert"));
  Alert alert;
  root.read("id", alert.id);
  root.read("rule", alert.rule);
  root.read("kind", alert.kind, kAlertKindNames);
  root.read("object", alert.object);
  root.read("text", alert.text);
  root.read("phase", alert.phase, kAlertPhaseNames);
  root.read("since_ms", alert.since_ms);
  root.read_if("resolved_ms", alert.resolved_ms);
  root.read("firing_told", alert.is_firing_told);
  root.read("resolved_told", alert.is_resolved_told);
  return root.finish(std::move(alert));
}

}  // namespace

std::string alert_json(const Alert& alert) {
  std::string text = "{";
  const auto add = [&text](std::string_view key, std::string_view value) {
    text += fmt::format(R"({}"{}":)", text.size() > 1 ? "," : "", key);
    append_json_quoted(value, text);
  };
  add("id", alert.id);
  add("rule", alert.rule);
  add("kind", at(kAlertKindNames, static_cast<int>(alert.kind)));
  add("object", alert.object);
  add("text", alert.text);
  add("phase", at(kAlertPhaseNames, static_cast<int>(alert.phase)));
  text += fmt::format(R"(,"since_ms":{})", alert.since_ms);
  if (alert.phase == AlertPhase::kResolved)
    text += fmt::format(R"(,"resolved_ms":{})", alert.resolved_ms);
  return text + "}";
}

Status AlertBook::load(const control::ClusterTables& tables, Seconds now) {
  const auto rules = tables.observed.find(std::string(kAlertRulesKey));
  if (rules != tables.observed.end()) {
    REGATTA_TRY_DO(set_rules(rules->second.value, "store: alert rules"));
    has_new_rules_ = false;
  }
  for (auto record = tables.observed.lower_bound(std::string(kAlerts));
       record != tables.observed.end() && record->first.starts_with(kAlerts); ++record) {
    REGATTA_TRY(alert, read_alert(record->second.value));
    const std::string id = alert.id;
    if (alert.phase == AlertPhase::kFiring) {
      ++firing_;
      states_[{alert.rule, alert.object}] = {
          .first = now, .last = now, .text = alert.text, .alert = id};
    }
    if (!alert.is_firing_told) untold_.emplace_back(id, AlertPhase::kFiring);
    if (alert.phase == AlertPhase::kResolved && !alert.is_resolved_told)
      untold_.emplace_back(id, AlertPhase::kResolved);
    alerts_[id] = std::move(alert);
  }
  return {};
}

Status AlertBook::set_rules(std::string_view text, std::string_view name) {
  REGATTA_TRY(rules, parse_alert_rules(text, name));
  rules_ = std::move(rules);
  has_new_rules_ = true;
  return {};
}

const AlertRule* AlertBook::find_rule(std::string_view name) const {
  const auto found = std::find_if(rules_.begin(), rules_.end(), [name](const AlertRule& rule) {
    return rule.name == name && rule.is_enabled;
  });
  return found == rules_.end() ? nullptr : &*found;
}

void AlertBook::fire(const AlertRule& rule, const std::string& object, State& state,
                     std::int64_t unix_ms) {
  if (firing_ >= kFiringMax) return;
  ++firing_;
  Alert alert{.id = fmt::format("{}/{}/{}", rule.name, object, unix_ms),
              .rule = rule.name,
              .kind = rule.kind,
              .object = object,
              .text = state.text,
              .since_ms = unix_ms};
  state.alert = alert.id;
  untold_.emplace_back(alert.id, AlertPhase::kFiring);
  change(alert.id);
  alerts_[state.alert] = std::move(alert);
}

void AlertBook::resolve(State& state, std::int64_t unix_ms) {
  Alert& alert = alerts_.at(state.alert);
  --firing_;
  alert.phase = AlertPhase::kResolved;
  alert.resolved_ms = unix_ms;
  untold_.emplace_back(alert.id, AlertPhase::kResolved);
  change(alert.id);
}

void AlertBook::observe(const std::vector<AlertCondition>& conditions, Seconds now,
                        std::int64_t unix_ms) {
  for (const AlertCondition& condition : conditions) {
    const AlertRule* const rule = find_rule(condition.rule);
    if (rule == nullptr) continue;
    State& state =
        states_.try_emplace({condition.rule, condition.object}, State{.first = now, .last = now})
            .first->second;
    state.last = now;
    state.text = condition.text;
    if (state.alert.empty() && now - state.first >= rule->after)
      fire(*rule, condition.object, state, unix_ms);
  }
  for (auto entry = states_.begin(); entry != states_.end();)
    entry = is_finished(entry->first.first, entry->second, now, unix_ms) ? states_.erase(entry)
                                                                         : std::next(entry);
  drop_old(unix_ms);
}

bool AlertBook::is_finished(const std::string& rule_name, State& state, Seconds now,
                            std::int64_t unix_ms) {
  const AlertRule* const rule = find_rule(rule_name);
  if (rule != nullptr && state.last == now) return false;
  if (state.alert.empty()) return true;
  if (rule != nullptr && now - state.last < rule->clear) return false;
  resolve(state, unix_ms);
  return true;
}

void AlertBook::drop_old(std::int64_t unix_ms) {
  std::vector<std::pair<std::int64_t, std::string>> resolved;
  for (const auto& [id, alert] : alerts_)
    if (alert.phase == AlertPhase::kResolved) resolved.emplace_back(alert.resolved_ms, id);
  std::sort(resolved.begin(), resolved.end());
  for (std::size_t i = 0; i < resolved.size(); ++i) {
    const bool is_old = unix_ms - resolved[i].first > kResolvedKeptMs;
    if (!is_old && resolved.size() - i <= kResolvedMax) break;
    alerts_.erase(resolved[i].second);
    change(resolved[i].second);
  }
}

std::vector<Alert> AlertBook::take_messages() {
  std::vector<Alert> messages;
  for (const auto& [id, phase] : untold_) {
    const auto alert = alerts_.find(id);
    if (alert == alerts_.end()) continue;
    messages.push_back(alert->second);
    messages.back().phase = phase;
  }
  untold_.clear();
  return messages;
}

void AlertBook::set_told(const std::string& id, AlertPhase phase) {
  const auto alert = alerts_.find(id);
  if (alert == alerts_.end()) return;
  (phase == AlertPhase::kFiring ? alert->second.is_firing_told : alert->second.is_resolved_told) =
      true;
  change(id);
}

std::vector<std::pair<std::string, std::optional<std::string>>> AlertBook::take_records() {
  std::vector<std::pair<std::string, std::optional<std::string>>> records;
  if (std::exchange(has_new_rules_, false))
    records.emplace_back(kAlertRulesKey,
                         fmt::format(R"({{"rules":{}}})", alert_rules_json(rules_)));
  for (const std::string& id : changed_) {
    const auto alert = alerts_.find(id);
    records.emplace_back(std::string(kAlerts) + id, alert == alerts_.end()
                                                        ? std::optional<std::string>()
                                                        : alert_record(alert->second));
  }
  changed_.clear();
  return records;
}

}  // namespace regatta::monitoring
