// agent/internal/failure_cause.h: which of the things that went wrong in a run weighs most, and of
// equals came first, so that its error names the culprit and not those who suffered from it.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::agent {

// From the most telling to the least; a carrier and a worker weigh the same.
enum class CauseKind {
  kServerLost,   // a server's agent ended, fell silent or is cut off: takes its workers along
  kCarrierLost,  // a cable of the lab, or an interface of a real server
  kWorkerLost,   // did not start or join, is paused, was killed, or ended before its work was done
  kPeerTrouble,  // told kUnavailable or kTimeout: as a rule, it lost or waited for another one
};

struct Cause {
  CauseKind kind = CauseKind::kPeerTrouble;
  Seconds at;   // when it happened or was told
  Error error;  // the sentence
};

// The lost server if there is one; else the earliest lost worker or carrier; else the earliest
// trouble between peers. `causes` must not be empty.
const Cause& root_cause(const std::vector<Cause>& causes);

}  // namespace regatta::agent
