// collective/data_type.h: the elements that collectives move, and how they are reduced.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace regatta::collective {

enum class DataType { kF32, kF64, kF16, kBf16, kI8, kU8, kI32, kI64 };
enum class ReduceOp { kSum, kProduct, kMin, kMax, kAverage };

std::size_t size_of(DataType type);

struct Reduction {
  DataType type = DataType::kF32;
  ReduceOp op = ReduceOp::kSum;
  int divisor = 1;           // ranks that take part: the average divides by it
  bool is_ordered = false;   // CommunicatorOptions::deterministic: by the tree of reduce_kernels.h
  bool sums_in_f64 = false;  // CommunicatorOptions::sums_in_f64
};

// Buffers as bytes, and ranges of bytes in them.

struct ByteRange {
  std::size_t from = 0;  // from the start of the buffer
  std::size_t bytes = 0;

  std::size_t end() const { return from + bytes; }
};

// The end of the last of these parts of a buffer.
inline std::size_t end_of(std::span<const ByteRange> parts) {
  std::size_t end = 0;
  for (const ByteRange& part : parts)
    end = std::max(end, part.end());
  return end;
}

inline const std::byte* bytes_of(const void* data) {
  return static_cast<const std::byte*>(data);
}
inline std::byte* bytes_of(void* data) {
  return static_cast<std::byte*>(data);
}

inline bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b,
                    std::size_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

// the two 16-bit floats, widened to fp32 and rounded from it to nearest
// even.

struct Bf16 {
  std::uint16_t bits;
};

[[gnu::always_inline]] inline float widen(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

struct F16 {
  std::uint16_t bits;
};

// Bit by bit instead of with the compiler's own type, which takes a call for each element where the
// processor has no conversion; the loops below are vectorised with this one.
[[gnu::always_inline]] inline float widen(F16 x) {
  constexpr float kExponentShift = 0x1p112F;  // the exponents' biases are 15 and 127
  const std::uint32_t sign = (x.bits & 0x8000U) << 16;
  const float magnitude =
      std::bit_cast<float>(static_cast<std::uint32_t>(x.bits & 0x7fffU) << 13) * kExponentShift;
  const std::uint32_t special = magnitude >= 0x1p16F ? 0x7f800000U : 0;  // infinity and NaN
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | special | sign);
}

template <typename T>
[[gnu::always_inline]] inline T widen(T x) {
  return x;
}

[[gnu::always_inline]] inline F16 round_to_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Added to 0.5, the last bit of a subnormal f16 becomes the last bit of the float.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xfffU + (magnitude >> 13 & 1U)) >> 13;
  const std::uint32_t special = magnitude > 0x7f800000U ? 0x7e00U : 0x7c00U;
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;  // 2^-14
  return {
      static_cast<std::uint16_t>((magnitude >= 0x47800000U ? special : finite) | sign)};  // 2^16
}

[[gnu::always_inline]] inline Bf16 round_to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  // The carry of rounding would turn some NaNs into infinities.
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  const std::uint32_t quiet = (bits >> 16) | 0x40U;
  return {static_cast<std::uint16_t>(is_nan ? quiet : rounded)};
}

template <typename T, typename Wide>
[[gnu::always_inline]] inline T narrow(Wide x) {
  if constexpr (std::is_same_v<T, Bf16>)
    return round_to_bf16(x);
  else if constexpr (std::is_same_v<T, F16>)
    return round_to_f16(x);
  else
    return static_cast<T>(x);
}

}  // namespace regatta::collective
