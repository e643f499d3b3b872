#include "regatta/platform/node_agent/agent_core.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace regatta::node_agent {

AgentCore::AgentCore(Seconds lease, const std::vector<JournalEntry>& journal, Seconds last_contact)
    : lease_(lease), last_contact_(last_contact) {
  for (const JournalEntry& entry : compacted(journal))
    known_[entry.key].entry = entry;
}

std::vector<ReplicaKey> AgentCore::started() const {
  std::vector<ReplicaKey> keys;
  for (const auto& [key, known] : known_)
    if (known.entry.phase == EntryPhase::kStarted) keys.push_back(key);
  return keys;
}

ReplicaReport AgentCore::report_of(const Known& known) const {
  const JournalEntry& entry = known.entry;
  return {.key = entry.key,
          .fence = entry.fence,
          .is_over = entry.phase == EntryPhase::kOver,
          .exit_status = entry.exit_status,
          .signal = entry.signal,
          .is_node_fault = entry.is_node_fault,
          .running_for = known.ran};
}

void AgentCore::write(const JournalEntry& entry) {
  actions_.journal.push_back(entry);
  if (entry.phase == EntryPhase::kForgotten) {
    known_.erase(entry.key);
    return;
  }
  Known& known = known_[entry.key];
  known.entry = entry;
  actions_.reports.push_back(report_of(known));
}

void AgentCore::obey(const ReplicaOrder& order, Seconds now) {
  const auto found = known_.find(order.key);
  switch (order.kind) {
    case control::OrderKind::kStart: {
      // A later attempt has a higher fence; an order of an earlier one comes too late.
      const bool is_fenced = std::any_of(known_.begin(), known_.end(), [&](const auto& each) {
        return each.first.job == order.key.job && each.second.entry.fence > order.fence;
      });
      const Seconds lease = order.lease.value > 0 ? order.lease : lease_;
      if (found != known_.end()) {
        actions_.reports.push_back(report_of(found->second));
      } else if (!is_fenced && now <= end_of(lease)) {
        write({.key = order.key,
               .fence = order.fence,
               .phase = EntryPhase::kStarted,
               .lease = lease});
        actions_.starts.push_back(order);
        actions_.starts.back().lease = lease;
      }
      return;
    }
    case control::OrderKind::kStop:
      if (found == known_.end()) {
        write({.key = order.key,
               .fence = order.fence,
               .phase = EntryPhase::kOver,
               .is_node_fault = true});
      } else if (found->second.entry.phase == EntryPhase::kOver) {
        actions_.reports.push_back(report_of(found->second));
      } else if (!std::exchange(found->second.is_stopping, true)) {
        actions_.stops.push_back(order.key);
      }
      return;
    case control::OrderKind::kForget:
      if (found != known_.end() && found->second.entry.phase == EntryPhase::kOver &&
          found->second.entry.fence == order.fence)
        write({.key = order.key, .fence = order.fence, .phase = EntryPhase::kForgotten});
      return;
  }
}

void AgentCore::ended(const ReplicaKey& key, int exit_status, int signal, bool is_node_fault,
                      Seconds ran) {
  const auto found = known_.find(key);
  if (found == known_.end() || found->second.entry.phase == EntryPhase::kOver) return;
  JournalEntry entry = found->second.entry;
  entry.phase = EntryPhase::kOver;
  entry.exit_status = exit_status;
  entry.signal = signal;
  entry.is_node_fault |= is_node_fault;
  found->second.ran = ran;
  write(entry);
}

void AgentCore::answered(Seconds sent) {
  last_contact_ = std::max(last_contact_, sent);
}

void AgentCore::welcomed(Seconds lease) {
  lease_ = lease;
  kept_until_ = {};
}

void AgentCore::keep_until(Seconds time) {
  kept_until_ = std::max(kept_until_, time);
}

Seconds AgentCore::end_of(Seconds lease) const {
  return std::max(last_contact_ + lease, kept_until_);
}

Seconds AgentCore::first_end() const {
  Seconds first{std::numeric_limits<double>::infinity()};
  for (const auto& [key, known] : known_)
    if (known.entry.phase == EntryPhase::kStarted && !known.is_killed)
      first = std::min(first, end_of(known.entry.lease));
  return first;
}

void AgentCore::tick(Seconds now) {
  for (auto& [key, known] : known_) {
    if (known.entry.phase == EntryPhase::kOver) {
      actions_.reports.push_back(report_of(known));  // until the controller says that it knows
    } else if (now > end_of(known.entry.lease)) {
      known.entry.is_node_fault = true;
      known.is_stopping = true;
      known.is_killed = true;
      actions_.kills.push_back(key);
    }
  }
}

std::vector<ReplicaReport> AgentCore::complete_report() const {
  std::vector<ReplicaReport> reports;
  for (const auto& [key, known] : known_)
    reports.push_back(report_of(known));
  return reports;
}

AgentActions AgentCore::take_actions() {
  return std::exchange(actions_, {});
}

std::vector<JournalEntry> compacted(const std::vector<JournalEntry>& journal) {
  std::map<ReplicaKey, JournalEntry> last;
  for (const JournalEntry& entry : journal)
    last[entry.key] = entry;
  std::vector<JournalEntry> kept;
  for (const auto& [key, entry] : last)
    if (entry.phase != EntryPhase::kForgotten) kept.push_back(entry);
  return kept;
}

}  // namespace regatta::node_agent
