// sched/internal/earliest_start.h: when and where a pending job would start if running jobs end as
// expected and nothing else came.
#pragma once

#include <optional>

#include "regatta/platform/sched/internal/decision_state.h"

namespace regatta::sched {

// Nothing where it would not start even after the last end that is known. Jobs that this decision
// starts run too, and what earlier reservations hold is not free.
std::optional<StartReservation> earliest_start(const DecisionState& state, int pending);

}  // namespace regatta::sched
