// agent/internal/worker_log_line.h: one line of a worker's standard error. A line that os/log.h
// wrote carries a time stamp and a level of its own; the reader of a run's log wants one of each.
// Pure.
#pragma once

#include <string_view>

#include "regatta/base/os/log.h"

namespace regatta::agent {

struct WorkerLogLine {
  os::LogLevel level = os::LogLevel::kInfo;
  std::string_view text;  // a part of the line, without time stamp and level
};

// A line of any other form is returned whole, with the level kInfo.
WorkerLogLine parse_worker_log_line(std::string_view line);

}  // namespace regatta::agent
