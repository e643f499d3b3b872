// monitoring/alert_book.h: alerts in time: what holds for long enough fires once, and is resolved
// once it has not held for long enough. Pure: time is an argument.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/control/cluster_tables.h"
#include "regatta/platform/monitoring/alert_rules.h"

namespace regatta::monitoring {

// Something that a rule asks about and that holds now.
struct AlertCondition {
  std::string rule;
  std::string object;  // of the rule's kind: a node, a job, a queue; "": the controller
  std::string text;    // one sentence
};

enum class AlertPhase { kFiring, kResolved };
inline constexpr EnumNames<2> kAlertPhaseNames = {"firing", "resolved"};

struct Alert {
  std::string id;  // of this firing: rule, object and time
  std::string rule;
  AlertKind kind = AlertKind::kNodeSilent;
  std::string object;
  std::string text;
  AlertPhase phase = AlertPhase::kFiring;
  std::int64_t since_ms = 0;
  std::int64_t resolved_ms = 0;
  // Phases that everybody was told about, so that a restart tells nobody twice.
  bool is_firing_told = false;
  bool is_resolved_told = false;

  bool operator==(const Alert&) const = default;
};
std::string alert_json(const Alert& alert);

class AlertBook {
 public:
  static constexpr std::size_t kResolvedMax = 1000;
  static constexpr std::size_t kFiringMax = 10'000;  // further ones wait for a place
  static constexpr std::int64_t kResolvedKeptMs = 86'400'000;

  // The rules and alerts of an earlier process. kInvalidInput: a record is damaged.
  Status load(const control::ClusterTables& tables, Seconds now);

  const std::vector<AlertRule>& rules() const { return rules_; }
  // {"rules": [...]}; alerts of rules that are gone are resolved at the next observe().
  Status set_rules(std::string_view text, std::string_view name);

  // All conditions that hold at this moment.
  void observe(const std::vector<AlertCondition>& conditions, Seconds now, std::int64_t unix_ms);
  const std::map<std::string, Alert>& alerts() const { return alerts_; }  // by id
  std::size_t firing() const { return firing_; }

  // Alerts whose phase nobody was told about, the oldest first; each is given once.
  std::vector<Alert> take_messages();
  // Everybody was told of this phase, or it was given up.
  void set_told(const std::string& id, AlertPhase phase);

  // Records that have changed since the last call: key, and value or nothing (removed).
  std::vector<std::pair<std::string, std::optional<std::string>>> take_records();

 private:
  struct State {
    Seconds first;  // since when it holds
    Seconds last;   // when it held last
    std::string text;
    std::string alert;  // id; "": none yet
  };
  const AlertRule* find_rule(std::string_view name) const;
  void fire(const AlertRule& rule, const std::string& object, State& state, std::int64_t unix_ms);
  void resolve(State& state, std::int64_t unix_ms);
  // Whether the state is to be forgotten; resolves its alert first.
  bool is_finished(const std::string& rule_name, State& state, Seconds now, std::int64_t unix_ms);
  void drop_old(std::int64_t unix_ms);
  void change(const std::string& id) { changed_.insert(id); }

  std::vector<AlertRule> rules_ = default_alert_rules();
  bool has_new_rules_ = false;
  std::map<std::pair<std::string, std::string>, State> states_;  // by rule and object
  std::map<std::string, Alert> alerts_;
  std::set<std::string> changed_;  // ids of alerts
  std::size_t firing_ = 0;
  std::vector<std::pair<std::string, AlertPhase>> untold_;
};

}  // namespace regatta::monitoring
