// cli/time_flag.h: the time that a flag gives.
#pragma once

#include <string>

#include "regatta/core/number_text.h"
#include "regatta/core/result.h"
#include "regatta/core/units_text.h"

namespace regatta::cli {

// Of `text`, like 10ms; kInvalidInput begins with the flag. A number alone is told to take `unit`,
// in which people count such times.
inline Result<Seconds> time_flag(const std::string& flag, const std::string& text,
                                 const std::string& unit = "s") {
  auto time = parse_seconds(text);
  if (time) return time;
  if (parse_number<double>(text))
    return Error{Code::kInvalidInput,
                 flag + ": '" + text + "' has no unit; write it like " + text + unit};
  return Error{
      Code::kInvalidInput,
      flag + ": '" + text + "' is not a number with a unit of time; write it like 10" + unit};
}

}  // namespace regatta::cli
