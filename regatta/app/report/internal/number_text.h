// report/internal/number_text.h: times, amounts and ratios as people read them, the same on every
// page and on the terminal; one unit for all values of a column or an axis.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "regatta/base/core/units.h"

namespace regatta::report {

// Writes all values of a column in one unit, with about three digits for the largest.
class ColumnFormat {
 public:
  static ColumnFormat bytes(double largest);                     // "1.50 GiB"
  static ColumnFormat bits_per_second(BytesPerSecond largest);   // "94.1 Mbps": network links
  static ColumnFormat bytes_per_second(BytesPerSecond largest);  // "12.3 GB/s": algbw, busbw
  std::string operator()(double value) const;  // "< 0.01 GiB" for what rounds to 0
  std::string operator()(Bytes size) const { return (*this)(static_cast<double>(size.value)); }
  std::string operator()(BytesPerSecond rate) const { return (*this)(rate.value); }
  // For charts, whose axes have the unit in their names.
  double number(double value) const { return value / unit_size_; }
  std::string_view unit() const { return unit_; }

 private:
  // `units`: size and name, smallest first.
  ColumnFormat(double largest, std::span<const std::pair<double, std::string_view>> units);

  double unit_size_ = 1;
  int decimals_ = 0;
  std::string_view unit_;
};

// The same for times, with about four digits for `typical`.
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
std::string thousands(long long count);    // "5,232"

std::string count_text(long long count);  // "1.75 billion", "812"

}  // namespace regatta::report
