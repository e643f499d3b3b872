// sharing/daemon.h: `regatta gpu daemon`: one thread that serves clients and operators, and notices
// the end of clients.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/daemon/engine_shares.h"
#include "regatta/gpu/sharing/internal/daemon/residency_manager.h"
#include "regatta/gpu/sharing/internal/daemon/turn_scheduler.h"
#include "regatta/gpu/sharing/internal/policy/share.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

inline constexpr const char* kDefaultState = "/var/lib/regatta-gpu";

struct DaemonOptions {
  std::string state;  // a folder of its own
  std::string socket = kDefaultSocket;
  std::optional<regatta_share_policy> policy;  // none: as in the state; fixed in a new one
  std::vector<Bytes> gpus = {Bytes{0}};        // memory of each; 0: unknown
  TurnSchedulerOptions turns;
  EngineRates engine_rates{};        // of each GPU
  EngineSessions engine_sessions{};  // likewise
  Bytes host_memory;                 // for swapped-out memory; 0: no over-commit
  ResidencyOptions residency;
  // With which the books are compared when an operator asks for them; "": with nothing.
  std::string nvml = "libnvidia-ml.so.1";
  bool opens_when_lost = true;  // whether launches continue while no daemon answers
};

// Serves until `stop`. Continues the state that an earlier daemon left in the folder. kConflict
// when another daemon uses the folder or the socket.
Status serve(const DaemonOptions& options, const std::atomic<bool>& stop);

}  // namespace regatta::sharing
