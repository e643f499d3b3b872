// agent/verdict.h: which of the things that went wrong in a run came first, so that its error names
// the culprit and not those who suffered from it.
#pragma once

#include <string>
#include <vector>

#include "regatta/core/result.h"
#include "regatta/core/units.h"

namespace regatta::agent {

// From the most telling to the least.
enum class CauseKind {
  kServerLost,   // a server's agent died or fell silent: takes its workers along
  kCarrierLost,  // a cable that the run uses
  kWorkerLost,   // killed by a signal, paused, or ended by an error of its own
  kPeerTrouble,  // a worker that lost or waited for another one: a consequence
};

struct Cause {
  CauseKind kind = CauseKind::kPeerTrouble;
  Seconds at;   // when it happened or was told
  Error error;  // the sentence
};

// The lost server if there is one; else the earliest lost worker or carrier; else the earliest
// trouble between peers. `causes` must not be empty.
const Cause& first_cause(const std::vector<Cause>& causes);

}  // namespace regatta::agent
