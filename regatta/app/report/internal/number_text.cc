#include "regatta/app/report/internal/number_text.h"

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace regatta::report {
namespace {

using Unit = std::pair<double, std::string_view>;  // size and name

constexpr double kKi = 1024;
constexpr Unit kBytes[] = {{1, "B"},
                           {kKi, "KiB"},
                           {kKi * kKi, "MiB"},
                           {kKi * kKi * kKi, "GiB"},
                           {kKi * kKi * kKi * kKi, "TiB"}};
constexpr Unit kBits[] = {{1, "bps"}, {1e3, "Kbps"}, {1e6, "Mbps"}, {1e9, "Gbps"}, {1e12, "Tbps"}};
constexpr Unit kByteRates[] = {
    {1, "B/s"}, {1e3, "KB/s"}, {1e6, "MB/s"}, {1e9, "GB/s"}, {1e12, "TB/s"}};

}  // namespace

ColumnFormat::ColumnFormat(double largest,
                           std::span<const std::pair<double, std::string_view>> units) {
  for (const auto& [size, name] : units) {
    if (largest < size && size > 1) break;
    unit_size_ = size;
    unit_ = name;
  }
  const double most = number(largest);
  decimals_ = most >= 100 || unit_ == "B" ? 0 : most >= 10 ? 1 : 2;
}

ColumnFormat ColumnFormat::bytes(double largest) {
  return {largest, kBytes};
}

ColumnFormat ColumnFormat::bits_per_second(BytesPerSecond largest) {
  ColumnFormat format(8 * largest.value, kBits);
  format.unit_size_ /= 8;
  return format;
}

ColumnFormat ColumnFormat::bytes_per_second(BytesPerSecond largest) {
  return {largest.value, kByteRates};
}

std::string ColumnFormat::operator()(double value) const {
  const double least = std::pow(10.0, -decimals_);
  if (value > 0 && number(value) < least / 2)
    return fmt::format("< {:.{}f} {}", least, decimals_, unit_);
  return fmt::format("{:.{}f} {}", number(value), decimals_, unit_);
}

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
  const double least = std::pow(10.0, -decimals_);
  if (time.value > 0 && number(time) < least / 2)
    return fmt::format("< {:.{}f} {}", least, decimals_, unit_);
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

std::string count_text(long long count) {
  if (count >= 1'000'000'000)
    return fmt::format("{:.2f} billion", static_cast<double>(count) / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.2f} million", static_cast<double>(count) / 1e6);
  return fmt::format("{}", count);
}

std::string thousands(long long count) {
  std::string text = std::to_string(count);
  const std::size_t first_digit = count < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first_digit + 3;)
    text.insert(at -= 3, ",");
  return text;
}

}  // namespace regatta::report
