// sched/internal/blocking_text.h: a blocking set as one sentence.
#pragma once

#include <string>

#include "regatta/platform/sched/start_prediction.h"

namespace regatta::sched {

std::string blocking_sentence(const JobRequest& job, const BlockingSet& set, Seconds now);

}  // namespace regatta::sched
