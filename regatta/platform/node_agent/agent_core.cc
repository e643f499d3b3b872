#include "regatta/platform/node_agent/agent_core.h"

#include <algorithm>
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
      if (found != known_.end()) {
        actions_.reports.push_back(report_of(found->second));
      } else if (!is_fenced && now - last_contact_ <= lease_) {
        write({.key = order.key, .fence = order.fence, .phase = EntryPhase::kStarted});
        actions_.starts.push_back(order);
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

void AgentCore::tick(Seconds now) {
  const bool is_lost = now - last_contact_ > lease_;
  for (auto& [key, known] : known_) {
    if (known.entry.phase == EntryPhase::kOver) {
      actions_.reports.push_back(report_of(known));  // until the controller says that it knows
    } else if (is_lost) {
      known.entry.is_node_fault = true;
      known.is_stopping = true;
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
