// simulate/internal/coarse_packets.h: decides whether the flow level simulates a workload as coarse
// packets, and how long they are.
//
// In exchanges each rank sends to one peer after the other, so that messages meet on links where
// ranks are late, and what waits for a paused link holds up all that came by the same one. Max-min
// rates know nothing of that; coarse packets, which stand for several, queue, pause and wait.
#pragma once

#include <cstdint>
#include <optional>

#include "regatta/base/core/units.h"
#include "regatta/network/simulate/internal/scenario_workload.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

struct CoarsePacketPlan {
  std::uint32_t per_message = 1;  // about
  Bytes least;                    // of a packet, once all bytes are divided by `scale`
  Bytes most;
  // Bytes and rates are divided by this, >= 1, so that times stay as they are, but for those to
  // fill a buffer: more than 1 where even the longest packets would be too many.
  double scale = 1;
};

// None: max-min rates serve. They do where there is no exchange, where switches drop packets or
// spread those of one message, and where messages are too many.
std::optional<CoarsePacketPlan> plan_coarse_packets(const Scenario& scenario,
                                                    const ScenarioWorkload& workload);

}  // namespace regatta::simulate
