#include "regatta/coll/reduce_kernels.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace regatta::coll {
namespace {

struct Bf16 {
  std::uint16_t bits;
};

inline float widen(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

struct F16 {
  std::uint16_t bits;
};

// Bit by bit instead of with the compiler's own type, which takes a call for each element where the
// processor has no conversion; the loops below are vectorised with this one.
inline float widen(F16 x) {
  constexpr float kExponentShift = 0x1p112F;  // the exponents' biases are 15 and 127
  const std::uint32_t sign = (x.bits & 0x8000U) << 16;
  const float magnitude =
      std::bit_cast<float>(static_cast<std::uint32_t>(x.bits & 0x7fffU) << 13) * kExponentShift;
  const std::uint32_t special = magnitude >= 0x1p16F ? 0x7f800000U : 0;  // infinity and NaN
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | special | sign);
}

template <typename T>
inline T widen(T x) {
  return x;
}

inline F16 round_to_f16(float x) {
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

inline Bf16 round_to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  // The carry of rounding would turn some NaNs into infinities.
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  const std::uint32_t quiet = (bits >> 16) | 0x40U;
  return {static_cast<std::uint16_t>(is_nan ? quiet : rounded)};
}

template <typename T, typename Wide>
inline T narrow(Wide x) {
  if constexpr (std::is_same_v<T, Bf16>)
    return round_to_bf16(x);
  else if constexpr (std::is_same_v<T, F16>)
    return round_to_f16(x);
  else
    return static_cast<T>(x);
}

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
  // Integer sums wrap round, as on every device.
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }
};
struct Multiply {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a * b);
  }
  std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
  }
  std::int64_t operator()(std::int64_t a, std::int64_t b) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};

// `omp simd` promises the compiler that iterations are independent, also when dst is a or b; its
// own check at run time would send that case to the scalar loop.
template <typename T, typename Op>
void combine_as(std::byte* dst_bytes, const std::byte* a_bytes, const std::byte* b_bytes,
                std::size_t bytes) {
  auto* dst = reinterpret_cast<T*>(dst_bytes);
  const auto* a = reinterpret_cast<const T*>(a_bytes);
  const auto* b = reinterpret_cast<const T*>(b_bytes);
  const std::size_t count = bytes / sizeof(T);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    dst[i] = narrow<T>(Op{}(widen(a[i]), widen(b[i])));
}

template <typename T>
void combine_typed(ReduceOp op, std::byte* dst, const std::byte* a, const std::byte* b,
                   std::size_t bytes) {
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAverage:
      return combine_as<T, Add>(dst, a, b, bytes);
    case ReduceOp::kProduct:
      return combine_as<T, Multiply>(dst, a, b, bytes);
    case ReduceOp::kMin:
      return combine_as<T, Min>(dst, a, b, bytes);
    case ReduceOp::kMax:
      return combine_as<T, Max>(dst, a, b, bytes);
  }
}

template <typename T>
void divide_as(std::byte* bytes_at, std::size_t bytes, int divisor) {
  auto* data = reinterpret_cast<T*>(bytes_at);
  using Wide = decltype(widen(T{}) + 0);  // no number of ranks is too large for the type of bytes
  const auto by = static_cast<Wide>(divisor);
  const std::size_t count = bytes / sizeof(T);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    data[i] = narrow<T>(widen(data[i]) / by);
}

}  // namespace

std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::kI8:
    case DataType::kU8:
      return 1;
    case DataType::kF16:
    case DataType::kBf16:
      return 2;
    case DataType::kF32:
    case DataType::kI32:
      return 4;
    case DataType::kF64:
    case DataType::kI64:
      return 8;
  }
  return 1;
}

void combine(const Reduction& reduction, std::byte* dst, const std::byte* a, const std::byte* b,
             std::size_t bytes) {
  switch (reduction.type) {
    case DataType::kF32:
      return combine_typed<float>(reduction.op, dst, a, b, bytes);
    case DataType::kF64:
      return combine_typed<double>(reduction.op, dst, a, b, bytes);
    case DataType::kF16:
      return combine_typed<F16>(reduction.op, dst, a, b, bytes);
    case DataType::kBf16:
      return combine_typed<Bf16>(reduction.op, dst, a, b, bytes);
    case DataType::kI8:
      return combine_typed<std::int8_t>(reduction.op, dst, a, b, bytes);
    case DataType::kI32:
      return combine_typed<std::int32_t>(reduction.op, dst, a, b, bytes);
    case DataType::kI64:
      return combine_typed<std::int64_t>(reduction.op, dst, a, b, bytes);
    case DataType::kU8:
      return combine_typed<std::uint8_t>(reduction.op, dst, a, b, bytes);
  }
}

void finish(const Reduction& reduction, std::byte* data, std::size_t bytes) {
  if (reduction.op != ReduceOp::kAverage) return;
  switch (reduction.type) {
    case DataType::kF32:
      return divide_as<float>(data, bytes, reduction.divisor);
    case DataType::kF64:
      return divide_as<double>(data, bytes, reduction.divisor);
    case DataType::kF16:
      return divide_as<F16>(data, bytes, reduction.divisor);
    case DataType::kBf16:
      return divide_as<Bf16>(data, bytes, reduction.divisor);
    case DataType::kI8:
      return divide_as<std::int8_t>(data, bytes, reduction.divisor);
    case DataType::kI32:
      return divide_as<std::int32_t>(data, bytes, reduction.divisor);
    case DataType::kI64:
      return divide_as<std::int64_t>(data, bytes, reduction.divisor);
    case DataType::kU8:
      return divide_as<std::uint8_t>(data, bytes, reduction.divisor);
  }
}

}  // namespace regatta::coll
