#include "regatta/app/report/internal/number_text.h"

#include <cmath>
#include <string>

#include <fmt/format.h>

namespace regatta::report {

TimeFormat::TimeFormat(Seconds typical) {
  const double value = std::abs(typical.value);
  if (value >= 1) {
    unit_ = "s";
    decimals_ = value >= 10 ? 2 : 3;
  } else if (value >= 1e-3 || value == 0) {
    scale_ = 1e3;
    unit_ = "ms";
    decimals_ = value >= 0.1 ? 1 : 2;
  } else {
    scale_ = 1e6;
    unit_ = "us";
    decimals_ = 1;
  }
}

std::string TimeFormat::operator()(Seconds time) const {
  return fmt::format("{:.{}f} {}", number(time), decimals_, unit_);
}

std::string TimeFormat::difference(Seconds time) const {
  // No sign on what rounds to nothing.
  const double value = number(time);
  if (std::abs(value) < 0.5 * std::pow(10.0, -decimals_)) return (*this)({0});
  return fmt::format("{:+.{}f} {}", value, decimals_, unit_);
}

std::string signed_percent(double ratio) {
  if (std::abs(ratio) < 0.0005) return "0.0 %";
  return fmt::format("{:+.1f} %", ratio * 100);
}

}  // namespace regatta::report
