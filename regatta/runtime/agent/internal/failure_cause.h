// agent/internal/failure_cause.h: the root cause among the faults of a run: the gravest kind, and
// the earliest of that kind, so that the error names the culprit and not its victims.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::agent {

// From the gravest to the least; a carrier and a worker rank the same.
enum class CauseKind {
  kServerLost,   // a server's agent ended, fell silent or is cut off; its workers end with it
  kCarrierLost,  // a cable of the lab, or an interface of a real server
  kWorkerLost,   // did not start or join, is paused, was killed, or ended before its work was done
  kPeerTrouble,  // reported kUnavailable or kTimeout: mostly it lost or waited for another one
};

struct Cause {
  CauseKind kind = CauseKind::kPeerTrouble;
  Seconds at;   // when it happened or was reported
  Error error;  // the sentence
};

// The lost server if there is one; else the earliest lost worker or carrier; else the earliest
// trouble between peers. `causes` must not be empty.
const Cause& root_cause(const std::vector<Cause>& causes);

}  // namespace regatta::agent
