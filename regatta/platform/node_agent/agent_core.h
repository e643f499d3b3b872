// node_agent/agent_core.h: what the agent of a server does with orders, ends of processes and
// silence; pure. It keeps a replica from starting twice, and from running where nobody may rely on
// it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/control/node.h"

namespace regatta::node_agent {

using control::ReplicaKey;
using control::ReplicaOrder;
using control::ReplicaReport;

// Until a controller says another one, and of entries of before replicas had leases.
inline constexpr Seconds kFirstLease{30};

enum class EntryPhase {
  kStarted,  // written before its first process is made
  kOver,     // no process is left, and none will be made
  kForgotten
};

// A line of the journal; the last line of a key counts.
struct JournalEntry {
  ReplicaKey key;
  control::Revision fence = 0;
  EntryPhase phase = EntryPhase::kStarted;
  int exit_status = 0;
  int signal = 0;
  bool is_node_fault = false;
  Seconds lease = kFirstLease;  // infinite: none

  bool operator==(const JournalEntry&) const = default;
};

// To be done in this order: the journal is on disk before anything else happens.
struct AgentActions {
  std::vector<JournalEntry> journal;
  std::vector<ReplicaOrder> starts;
  std::vector<ReplicaKey> stops;  // SIGTERM, and SIGKILL after a while
  std::vector<ReplicaKey> kills;  // SIGKILL at once
  std::vector<ReplicaReport> reports;
};

// All times are of one clock that runs while the machine sleeps (CLOCK_BOOTTIME).
class AgentCore {
 public:
  // `journal`: in the order of the file. `last_contact`: as an earlier agent of this boot kept it,
  // for its restart must not prolong the lease; the present where there was none.
  AgentCore(Seconds lease, const std::vector<JournalEntry>& journal, Seconds last_contact);

  // Whether its journal knows no replica.
  bool is_idle() const { return known_.empty(); }
  // Keys that have started and are not over: whose processes the caller looks for after its start.
  std::vector<ReplicaKey> started() const;

  void obey(const ReplicaOrder& order, Seconds now);
  // All processes of a replica are gone, or could not be made; the first rank that failed decides.
  // `ran`: for how long they have run, where that is known.
  void ended(const ReplicaKey& key, int exit_status, int signal, bool is_node_fault,
             Seconds ran = {});
  // A controller is there: what an earlier one has allowed is over. `lease`: of replicas whose
  // orders name none; above 0. Call answered() first.
  void welcomed(Seconds lease);
  // The controller has answered a message that was sent at `sent`.
  void answered(Seconds sent);
  // Leases of replicas end this and their length later; what supervises the processes gets it after
  // each change.
  Seconds last_contact() const { return last_contact_; }
  // The controller ends, and lets all replicas run on until `time` at least.
  void keep_until(Seconds time);
  Seconds kept_until() const { return kept_until_; }
  // When the first lease of a replica that runs ends; infinite without one.
  Seconds first_end() const;
  void tick(Seconds now);
  // Everything that the journal knows, for the first message of a connection.
  std::vector<ReplicaReport> complete_report() const;
  AgentActions take_actions();

 private:
  struct Known {
    JournalEntry entry;
    bool is_stopping = false;
    Seconds ran;             // of one that is over; the journal does not keep it
    bool is_killed = false;  // its lease is over
  };
  void write(const JournalEntry& entry);
  Seconds end_of(Seconds lease) const;
  ReplicaReport report_of(const Known& known) const;

  Seconds lease_;
  Seconds last_contact_;
  Seconds kept_until_;
  std::map<ReplicaKey, Known> known_;
  AgentActions actions_;
};

// The lines of a journal that still count, for a new file: one for each key that is not forgotten.
std::vector<JournalEntry> compacted(const std::vector<JournalEntry>& journal);

}  // namespace regatta::node_agent
