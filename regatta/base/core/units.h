// core/units.h: the units of the platform as types, and their text.
#pragma once

#include <compare>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta {

// Quantities as types, so that bytes are never added to seconds. Values are in SI base units
// (bytes, seconds, bytes per second, floating-point operations).

// A whole Rep (Bytes) drops the fraction of a product or quotient.
template <typename Tag, typename Rep>
struct Quantity {
  Rep value{};

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return {a.value + b.value}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return {a.value - b.value}; }
  friend constexpr Quantity operator*(Quantity a, double k) {
    return {static_cast<Rep>(static_cast<double>(a.value) * k)};
  }
  friend constexpr Quantity operator*(double k, Quantity a) { return a * k; }
  friend constexpr Quantity operator/(Quantity a, double k) {
    return {static_cast<Rep>(static_cast<double>(a.value) / k)};
  }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value) / static_cast<double>(b.value);
  }
  constexpr Quantity& operator+=(Quantity other) { return *this = *this + other; }
  constexpr Quantity& operator-=(Quantity other) { return *this = *this - other; }
};

using Bytes = Quantity<struct BytesTag, long long>;
using Seconds = Quantity<struct SecondsTag, double>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag, double>;
using Flops = Quantity<struct FlopsTag, double>;  // floating-point operations
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag, double>;

// Only products and quotients with a physical meaning exist.
constexpr Seconds operator/(Bytes size, BytesPerSecond rate) {
  return {static_cast<double>(size.value) / rate.value};
}
constexpr BytesPerSecond operator/(Bytes size, Seconds time) {
  return {static_cast<double>(size.value) / time.value};
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return {work.value / rate.value};
}
constexpr FlopsPerSecond operator/(Flops work, Seconds time) {
  return {work.value / time.value};
}

namespace literals {

constexpr Bytes operator""_B(unsigned long long n) {
  return {static_cast<long long>(n)};
}
constexpr Bytes operator""_KiB(unsigned long long n) {
  return {static_cast<long long>(n) << 10};
}
constexpr Bytes operator""_MiB(unsigned long long n) {
  return {static_cast<long long>(n) << 20};
}
constexpr Bytes operator""_GiB(unsigned long long n) {
  return {static_cast<long long>(n) << 30};
}
constexpr Seconds operator""_s(long double x) {
  return {static_cast<double>(x)};
}
constexpr Seconds operator""_ms(long double x) {
  return {static_cast<double>(x) * 1e-3};
}
constexpr Seconds operator""_us(long double x) {
  return {static_cast<double>(x) * 1e-6};
}
constexpr BytesPerSecond operator""_GBps(unsigned long long n) {
  return {static_cast<double>(n) * 1e9};
}
constexpr BytesPerSecond operator""_Gbps(unsigned long long n) {
  return {static_cast<double>(n) * 1e9 / 8};
}
constexpr BytesPerSecond operator""_Mbps(unsigned long long n) {
  return {static_cast<double>(n) * 1e6 / 8};
}
constexpr FlopsPerSecond operator""_GFLOPS(unsigned long long n) {
  return {static_cast<double>(n) * 1e9};
}
constexpr FlopsPerSecond operator""_TFLOPS(unsigned long long n) {
  return {static_cast<double>(n) * 1e12};
}

}  // namespace literals

// Units and text. A unit is written with its number: 80GiB, 400Gbps, 50GB/s, 5us, 312TFLOPS, 20%.
// Parsing fails with kInvalidInput and a message with an example of a right value.

Result<Bytes> parse_bytes(std::string_view text);      // B, KB..TB (1000), KiB..TiB (1024)
Result<Seconds> parse_seconds(std::string_view text);  // ns, us, ms, s, min, h, d
Result<BytesPerSecond> parse_bytes_per_second(
    std::string_view text);  // bps..Tbps (bits), B/s..TB/s, KiB/s..TiB/s
Result<FlopsPerSecond> parse_flops_per_second(std::string_view text);  // MFLOPS..EFLOPS
Result<double> parse_ratio(std::string_view text);                     // "20%" or "0.2"

std::string format_bytes(Bytes size);                      // "1.50 GiB", "812 B"
std::string format_bytes(double size);                     // a modelled size, rounded down
std::string format_seconds(Seconds time);                  // "1.23 s", "45.6 ms", "7.8 us"
std::string format_duration(Seconds time);                 // "3.20 h", "41.5 d": for long work
std::string format_bits_per_second(BytesPerSecond rate);   // "100 Mbps": network links
std::string format_bytes_per_second(BytesPerSecond rate);  // "12.3 GB/s": memory and device links
std::string format_flops_per_second(FlopsPerSecond rate);  // "312 TFLOPS"
std::string format_percent(double ratio);                  // 0.123 -> "12.3 %"

}  // namespace regatta
