// comm/internal/watch/verdict.h: who is it that an operation which stands still waits for? Pure:
// what the ranks of the communicator say about the operation goes in, the culprits come out. The
// ranks themselves ask it (internal/engine/world_stall.cc), and whoever reads their records or
// flight files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::comm {

// Where a rank is, seen from an operation of its communicator.
enum class MemberState : std::uint8_t {
  kUnknown,    // it did not answer
  kNotCalled,  // it has called all before it, and not this one
  kBehind,     // it is still in an earlier operation of this communicator
  kEntered,
  kCompleted,  // it has ended its part
};

// What is known of one rank.
struct MemberReport {
  int rank = 0;  // of the world
  MemberState state = MemberState::kUnknown;
  bool knows_call = false;  // of kEntered and kCompleted: what it called
  std::uint64_t call = 0;
  std::uint64_t bytes = 0;
  bool is_stopped = false;        // its process is held, by SIGSTOP or a debugger
  bool is_gone = false;           // its process has ended
  bool is_elsewhere = false;      // of kNotCalled: another operation of the rank stands still:
  std::uint64_t other_call = 0;   // this one
  std::uint64_t other_bytes = 0;  //
};

struct StalledOperation {
  int rank = 0;  // of the world: who asks
  std::uint64_t call = 0;
  std::uint64_t bytes = 0;
  std::vector<MemberReport> members;  // the others, and the asking rank where it took part
  std::vector<int> waited_for;        // world ranks whose data it needs next
};

enum class Finding : std::uint8_t {
  kMismatch,   // the culprits called something else
  kGone,       // their processes have ended
  kStopped,    // their processes are held
  kSilent,     // they do not answer
  kNotCalled,  // they have not called it yet: they may only be busy
  kBlocked,    // all are in it: the path between the asking rank and the culprits
  kSlowLink,   // it moves: the links that go out of the culprits hold it up (link_utilization.h)
};

struct Verdict {
  Finding finding = Finding::kBlocked;
  std::vector<int> ranks;  // the culprits, world ranks, in order
  std::string text;        // "rank 2 at s1 has not called it"
  // Of kMismatch: no call that is not known yet can change who is the odd one.
  bool is_certain = true;
};

// The weightiest finding that the reports bear out. names: by world rank.
Verdict diagnose_stall(const StalledOperation& operation, const std::vector<std::string>& names);

// Who called something else than most others: of two equal parties the one without the lowest rank.
// Nothing when all that is known is the same call.
std::optional<Verdict> find_mismatch(const std::vector<MemberReport>& members,
                                     const std::vector<std::string>& names);

// "rank 0, rank 1 and rank 3"
std::string name_ranks(const std::vector<int>& ranks, const std::vector<std::string>& names);

}  // namespace regatta::comm
