// cli/time_flag.h: the time that a flag gives.
#pragma once

#include <string>

#include "regatta/core/result.h"
#include "regatta/core/units_text.h"

namespace regatta::cli {

// Of `text`, like 10ms; kInvalidInput begins with the flag.
inline Result<Seconds> time_flag(const std::string& flag, const std::string& text) {
  auto time = parse_seconds(text);
  if (!time) return Error{time.error().code, flag + ": " + time.error().message};
  return time;
}

}  // namespace regatta::cli
