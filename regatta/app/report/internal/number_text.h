// report/internal/number_text.h: times and ratios as people read them, the same on the page and the
// terminal.
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/units.h"

namespace regatta::report {

// Writes all times of a table in one unit, with about four digits for `typical`.
class TimeFormat {
 public:
  explicit TimeFormat(Seconds typical);
  std::string operator()(Seconds time) const;  // "412.5 ms"
  std::string difference(Seconds time) const;  // "+12.5 ms", "-3.0 ms"
  // For charts, whose axes have the unit in their names.
  double number(Seconds time) const { return time.value * scale_; }  // 412.5
  std::string_view unit() const { return unit_; }                    // "ms"

 private:
  double scale_ = 1;
  int decimals_ = 3;
  std::string_view unit_;
};

std::string signed_percent(double ratio);  // 0.034 -> "+3.4 %"

}  // namespace regatta::report
