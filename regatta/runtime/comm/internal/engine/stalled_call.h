// comm/internal/engine/stalled_call.h: an operation of this rank that has made no progress for a
// while.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

struct StalledCall {
  std::uint64_t communicator = 0;
  // As queries name it: a MessageMatcher operation number or a shared segment's sequence.
  std::uint64_t sequence = 0;
  bool is_shared = false;  // `seen` was read from the shared segments
  bool is_collective = true;
  std::uint64_t call = 0;  // of call_in_world()
  std::uint64_t bytes = 0;
  Seconds since;                   // the last progress
  std::vector<int> waited_for;     // world ranks whose data it needs next
  std::vector<MemberReport> seen;  // the ranks to query, and what is known of them
};

// The code of a call with the root, or the peer of a transfer, as a rank of the world; `members`:
// the world ranks of its communicator.
std::uint64_t call_in_world(std::uint64_t code, const std::vector<int>& members);

// Whether both are the same operation.
inline bool is_same(const StalledCall& a, const StalledCall& b) {
  return a.communicator == b.communicator && a.sequence == b.sequence && a.call == b.call &&
         a.is_shared == b.is_shared;
}

}  // namespace regatta::comm
