// core/units.h: quantities as types, so that bytes never meet seconds by accident.
// Kept in SI base units (bytes, seconds, bytes per second, floating-point operations); text is in
// units_text.h.
#pragma once

#include <compare>

namespace regatta {

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

// Only the products that mean something exist.
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
}  // namespace regatta
