// cli/internal/time_flag.h: the time that a flag gives.
#pragma once

#include <cmath>
#include <string>

#include <fmt/core.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::cli {

// Parses `text`, like 10ms; kInvalidInput begins with the flag. For a number alone it proposes
// `unit`, the usual unit of such times.
inline Result<Seconds> time_flag(const std::string& flag, const std::string& text,
                                 const std::string& unit = "s") {
  auto time = parse_seconds(text);
  if (time) return time;
  if (const auto number = parse_number<double>(text); number && std::isfinite(*number))
    return Error{Code::kInvalidInput,
                 flag + ": '" + text + "' has no unit; write it like " + text + unit};
  return Error{
      Code::kInvalidInput,
      flag + ": '" + text + "' is not a number with a unit of time; write it like 10" + unit};
}

struct TimeRange {
  Seconds least;
  Seconds most;
  const char* like;  // one that most people want
};

// The same, of a time that has to lie in `range`.
inline Result<Seconds> time_flag(const std::string& flag, const std::string& text,
                                 const TimeRange& range, const std::string& unit = "s") {
  REGATTA_TRY(time, time_flag(flag, text, unit));
  if (time >= range.least && time <= range.most) return time;
  return Error{Code::kInvalidInput,
               fmt::format("{}: '{}' is not from {} to {}; give one like {}", flag, text,
                           format_duration(range.least), format_duration(range.most), range.like)};
}

// Range of --period, between two probes on the same path, for probers and their collector.
inline constexpr TimeRange kProbePeriods{{0.01}, {1}, "10ms"};
inline constexpr const char* kProbePeriodHelp =
    "Time between two probes on the same path, from 10ms to 1s";

}  // namespace regatta::cli
