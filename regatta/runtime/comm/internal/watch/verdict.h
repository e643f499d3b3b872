// comm/internal/watch/verdict.h: the ranks that a stalled operation waits for. Pure: the reports of
// the ranks of its communicator go in, the verdict comes out. Used by the ranks themselves
// (internal/engine/stall_monitor.h) and by the readers of watch files and flight files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::comm {

// The state of a rank with regard to an operation of its communicator.
enum class MemberState : std::uint8_t {
  kUnknown,    // it has not replied
  kNotCalled,  // it has ended all operations before this one, and has not called it
  kBehind,     // it runs an earlier operation of this communicator
  kEntered,
  kCompleted,  // it has ended its part
};

// Everything that is known of one rank.
struct MemberReport {
  int rank = 0;  // of the world
  MemberState state = MemberState::kUnknown;
  bool knows_call = false;  // of kEntered and kCompleted: `call` and `bytes` are set
  std::uint64_t call = 0;
  std::uint64_t bytes = 0;
  bool is_stopped = false;        // its process is stopped, by SIGSTOP or a debugger
  bool is_gone = false;           // its process has ended
  bool is_elsewhere = false;      // of kNotCalled: it runs another operation, which is
  std::uint64_t other_call = 0;   // this call
  std::uint64_t other_bytes = 0;  // of so many bytes
};

struct StalledOperation {
  int rank = 0;  // of the world: the rank that judges
  std::uint64_t call = 0;
  std::uint64_t bytes = 0;
  std::vector<MemberReport> members;  // the others, and the judging rank where it takes part
  std::vector<int> waited_for;        // world ranks whose data it needs next
};

enum class Finding : std::uint8_t {
  kMismatch,   // the ranks called something else
  kGone,       // their processes have ended
  kStopped,    // their processes are stopped
  kSilent,     // they do not reply
  kNotCalled,  // they have not called it yet: they may only compute
  kBlocked,    // all have entered: the path between the judging rank and the ranks may be blocked
  kSlowLink,   // it moves: outgoing links of the ranks are slow (link_utilization.h)
};

struct Verdict {
  Finding finding = Finding::kBlocked;
  std::vector<int> ranks;  // world ranks, in order
  std::string text;        // "rank 2 at s1 has not called it"
  // kMismatch only: the calls that are still unknown cannot change which ranks are the minority.
  bool is_certain = true;
};

// The most serious finding that the reports support, in the order of Finding. names: by world rank.
Verdict diagnose_stall(const StalledOperation& operation, const std::vector<std::string>& names);

// The ranks that called something else than the majority; of two equal parties the lowest rank
// belongs to the majority. Nothing when all known calls are the same.
std::optional<Verdict> find_mismatch(const std::vector<MemberReport>& members,
                                     const std::vector<std::string>& names);

// "rank 0, rank 1 and rank 3"
std::string name_ranks(const std::vector<int>& ranks, const std::vector<std::string>& names);

}  // namespace regatta::comm
