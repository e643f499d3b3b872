#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr std::array<Unit, 9> kByteUnits{{{"B", 1},
                                          {"KB", 1e3},
                                          {"MB", 1e6},
                                          {"GB", 1e9},
                                          {"TB", 1e12},
                                          {"KiB", 1024.0},
                                          {"MiB", 1048576.0},
                                          {"GiB", 1073741824.0},
                                          {"TiB", 1099511627776.0}}};
constexpr std::array<Unit, 7> kSecondUnits{
    {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400}}};
constexpr std::array<Unit, 14> kRateUnits{{{"bps", 0.125},
                                           {"Kbps", 0.125e3},
                                           {"Mbps", 0.125e6},
                                           {"Gbps", 0.125e9},
                                           {"Tbps", 0.125e12},
                                           {"B/s", 1},
                                           {"KB/s", 1e3},
                                           {"MB/s", 1e6},
                                           {"GB/s", 1e9},
                                           {"TB/s", 1e12},
                                           {"KiB/s", 1024.0},
                                           {"MiB/s", 1048576.0},
                                           {"GiB/s", 1073741824.0},
                                           {"TiB/s", 1099511627776.0}}};
constexpr std::array<Unit, 5> kFlopsUnits{
    {{"MFLOPS", 1e6}, {"GFLOPS", 1e9}, {"TFLOPS", 1e12}, {"PFLOPS", 1e15}, {"EFLOPS", 1e18}}};

// The decimal number at the begin of `text`, which loses it; nothing where there is none. Numbers
// in hexadecimal are none here, for 0x10Gbps would be 16 Gbps.
std::optional<double> take_number(std::string_view& text) {
  const std::size_t sign = text.starts_with('+') ? 1 : 0;
  if (sign == 1 && text.substr(1).starts_with('-')) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data() + sign, text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) {
    const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
    const bool is_tiny = digits.find("e-") != digits.npos || digits.find("E-") != digits.npos;
    number = is_tiny ? 0 : std::numeric_limits<double>::infinity();
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// The value of `text` in base units; `example` completes the message: "write it like 80GiB".
Result<double> parse_with_units(std::string_view text, std::span<const Unit> units,
                                std::string_view example) {
  const auto wrong = [&](std::string_view why) {
    return Error{Code::kInvalidInput, fmt::format("'{}' {}; write it like {}", text, why, example)};
  };
  std::string_view rest = trim(text);
  const std::optional<double> number = take_number(rest);
  if (!number) return wrong("is not a number with a unit");
  if (!std::isfinite(*number)) return wrong("is not a finite number");
  const std::string_view suffix = trim(rest);
  if (suffix.empty()) return wrong("has no unit");
  for (const Unit& unit : units) {
    if (unit.name != suffix) continue;
    const double value = *number * unit.factor;
    if (!std::isfinite(value)) return wrong("is not a finite number");
    return value;
  }
  return wrong(fmt::format("has the unknown unit '{}'", suffix));
}

// `value` in the largest of `units` that leaves at least 1, with three significant digits.
std::string format_scaled(double value, std::span<const Unit> units) {
  const Unit* chosen = &units.front();
  for (const Unit& unit : units) {
    if (std::fabs(value) >= unit.factor * 0.9995) chosen = &unit;
  }
  const double scaled = value / chosen->factor;
  const bool is_whole = std::fabs(scaled - std::round(scaled)) <= 1e-9 * std::fabs(scaled);
  if (std::fabs(scaled) >= 100 || is_whole) {
    return fmt::format("{:.0f} {}", scaled, chosen->name);
  }
  return fmt::format("{:.{}f} {}", scaled, std::fabs(scaled) >= 10 ? 1 : 2, chosen->name);
}

template <typename Unitful>
Result<Unitful> as(Result<double> parsed) {
  if (!parsed) return parsed.error();
  return Unitful{static_cast<decltype(Unitful::value)>(*parsed)};
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  const Result<double> size = parse_with_units(text, kByteUnits, "80GiB");
  // A double at 2^63 and beyond does not fit a long long.
  if (size && std::fabs(*size) >= 9.2e18) {
    return Error{Code::kInvalidInput, fmt::format("'{}' is too large; write it like 80GiB", text)};
  }
  return as<Bytes>(size);
}

Result<Seconds> parse_seconds(std::string_view text) {
  return as<Seconds>(parse_with_units(text, kSecondUnits, "5us, 30s or 2h"));
}

Result<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  return as<BytesPerSecond>(parse_with_units(text, kRateUnits, "400Gbps or 50GB/s"));
}

Result<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  return as<FlopsPerSecond>(parse_with_units(text, kFlopsUnits, "312TFLOPS"));
}

Result<double> parse_ratio(std::string_view text) {
  std::string_view rest = trim(text);
  const std::optional<double> number = take_number(rest);
  const std::string_view suffix = trim(rest);
  if (!number || !std::isfinite(*number) || !(suffix.empty() || suffix == "%")) {
    return Error{Code::kInvalidInput,
                 fmt::format("'{}' is not a ratio; write it like 20% or 0.2", text)};
  }
  return suffix.empty() ? *number : *number / 100;
}

std::string format_bytes(Bytes size) {
  static constexpr std::array<Unit, 5> kBinary{{{"B", 1},
                                                {"KiB", 1024.0},
                                                {"MiB", 1048576.0},
                                                {"GiB", 1073741824.0},
                                                {"TiB", 1099511627776.0}}};
  return format_scaled(static_cast<double>(size.value), kBinary);
}

std::string format_bytes(double size) {
  return format_bytes(Bytes{static_cast<long long>(size)});
}

std::string format_seconds(Seconds time) {
  return format_scaled(time.value, std::span(kSecondUnits).first(4));
}

std::string format_duration(Seconds time) {
  return format_scaled(time.value, kSecondUnits);
}

std::string format_bits_per_second(BytesPerSecond rate) {
  return format_scaled(rate.value, std::span(kRateUnits).first(5));
}

std::string format_bytes_per_second(BytesPerSecond rate) {
  return format_scaled(rate.value, std::span(kRateUnits).subspan(5, 5));
}

std::string format_flops_per_second(FlopsPerSecond rate) {
  return format_scaled(rate.value, kFlopsUnits);
}

std::string format_percent(double ratio) {
  return fmt::format("{:.1f} %", ratio * 100);
}

}  // namespace regatta
