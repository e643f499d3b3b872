#include "regatta/runtime/comm/internal/compress/codec.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "regatta/model/collective/data_type.h"
#include "regatta/runtime/comm/internal/collective_names.h"

// Everything that a loop calls is compiled for the vectors of its caller.
#define REGATTA_INLINE [[gnu::always_inline]] inline

namespace regatta::comm::compress {
namespace {

constexpr std::uint32_t kMagnitude = 0x7fffffffU;
constexpr std::uint32_t kInfinity = 0x7f800000U;
// Below this the reciprocal of a scale could overflow.
constexpr float kSmallest = 0x1p-100F;

REGATTA_INLINE std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(x);
}

// The codes of one element. A scaled code takes t = x / scale, with |t| <= kLargest.
struct Int8Code {
  using Bits = std::int8_t;
  static constexpr float kLargest = 127;
  // Added to a number below 2^22, the last bits of the float are its nearest whole number.
  static constexpr float kRound = 0x1.8p23F;
  REGATTA_INLINE static Bits round(float t) {
    return static_cast<Bits>(bits_of(t + kRound) & 0xffU);
  }
  REGATTA_INLINE static float widen(Bits code) { return static_cast<float>(code); }
};

// 8-bit floats with kDigits bits behind the point; every value of |t| <= kLargest has a code.
template <int kDigits, int kBias>
struct Fp8Code {
  using Bits = std::uint8_t;
  static constexpr float kLargest = kDigits == 3 ? 448 : 57344;
  static constexpr int kShift = 23 - kDigits;
  // The distance of the smallest values: 2^(1 - bias - digits).
  static constexpr std::uint32_t kStepExponent = 127 + 1 - kBias - kDigits;
  static constexpr float kStep = std::bit_cast<float>(kStepExponent << 23);
  // Added to 2^23 steps, the last bits of the float count the steps.
  static constexpr float kRound = std::bit_cast<float>((kStepExponent + 23) << 23);

  REGATTA_INLINE static Bits round(float t) {
    const std::uint32_t magnitude = bits_of(t) & kMagnitude;
    const std::uint32_t sign = bits_of(t) >> 24 & 0x80U;
    const std::uint32_t subnormal =
        bits_of(std::bit_cast<float>(magnitude) + kRound) - bits_of(kRound);
    const std::uint32_t normal = (magnitude - (std::uint32_t{127 - kBias} << 23) +
                                  (1U << (kShift - 1)) - 1 + (magnitude >> kShift & 1U)) >>
                                 kShift;
    const bool is_normal = magnitude >= std::uint32_t{128 - kBias} << 23;
    return static_cast<Bits>((is_normal ? normal : subnormal) | sign);
  }
  REGATTA_INLINE static float widen(Bits code) {
    const std::uint32_t magnitude = code & 0x7fU;
    const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80U) << 24;
    const std::uint32_t normal = (magnitude + (std::uint32_t{127 - kBias} << kDigits)) << kShift;
    const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * kStep;
    const bool is_normal = magnitude >= 1U << kDigits;
    return std::bit_cast<float>((is_normal ? normal : bits_of(subnormal)) | sign);
  }
};

// A pseudo-random number from -0.5 to 0.5: a mix of the bits of its index and the seed.
REGATTA_INLINE float dither(std::uint32_t index, std::uint32_t seed) {
  std::uint32_t x = index * 0x9e3779b9U ^ seed;
  x = (x ^ x >> 16) * 0x7feb352dU;
  x = (x ^ x >> 15) * 0x846ca68bU;
  x ^= x >> 16;
  return static_cast<float>(static_cast<std::int32_t>(x >> 8)) * 0x1p-24F - 0.5F;
}

REGATTA_INLINE float dithered(float t, float largest, std::uint32_t index, std::uint32_t seed) {
  return std::clamp(t + dither(index, seed), -largest, largest);
}

REGATTA_INLINE float finite_or_zero(float x) {
  return (bits_of(x) & kMagnitude) < kInfinity ? x : 0.0F;
}

// x = in + residual; gives the bits of the largest magnitude.
template <bool kHasResidual>
REGATTA_INLINE std::uint32_t load_block(const float* in, const float* residual, std::size_t count,
                                        float* x) {
  std::uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::size_t i = 0; i < count; ++i) {
    float value = in[i];
    if constexpr (kHasResidual) value += residual[i];
    x[i] = value;
    largest = std::max(largest, bits_of(value) & kMagnitude);
  }
  return largest;
}

struct Scale {
  float scale = 0;
  float inverse = 0;
};
template <typename Code>
REGATTA_INLINE Scale scale_for(std::uint32_t largest_bits) {
  const float largest = std::bit_cast<float>(largest_bits);
  if (largest_bits >= kInfinity) return {std::numeric_limits<float>::quiet_NaN(), 0};
  if (largest < kSmallest) return {};
  return {largest / Code::kLargest, Code::kLargest / largest};
}

// error = x - what the codes say, to be written where there is a residual.
REGATTA_INLINE ErrorSquares sum_squares(const float* x, const float* error, std::size_t count) {
  float value_squares = 0;
  float error_squares = 0;
#pragma omp simd reduction(+ : value_squares, error_squares)
  for (std::size_t i = 0; i < count; ++i) {
    value_squares += x[i] * x[i];
    error_squares += error[i] * error[i];
  }
  return {static_cast<double>(value_squares), static_cast<double>(error_squares)};
}

// Codes one block and writes what is left out to `error`. Loops of one expression each, all in the
// nearest cache: the compiler keeps what a longer body names in memory, which stores of bytes may
// change for all it knows.
template <typename Code, bool kDithers>
REGATTA_INLINE void encode_block(const float* x, float* error, std::byte* out, std::size_t count,
                                 const Scale& scaled, std::uint32_t first, std::uint32_t seed) {
  const float scale = scaled.scale;
  const float inverse = scaled.inverse;
  std::memcpy(out, &scaled.scale, sizeof scaled.scale);
  auto* codes = reinterpret_cast<typename Code::Bits*>(out + sizeof(float));
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    codes[i] = kDithers ? Code::round(dithered(x[i] * inverse, Code::kLargest,
                                               first + static_cast<std::uint32_t>(i), seed))
                        : Code::round(x[i] * inverse);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    error[i] = x[i] - Code::widen(codes[i]) * scale;
}

template <typename Code, bool kHasResidual, bool kDithers>
REGATTA_INLINE ErrorSquares encode_blocks(const Encoding& work) {
  alignas(64) float x[kBlock];
  alignas(64) float own_error[kBlock];
  std::byte* out = work.out;
  ErrorSquares sums;
  for (std::size_t at = 0; at < work.count; at += kBlock) {
    const std::size_t count = std::min(kBlock, work.count - at);
    float* const error = kHasResidual ? work.residual + at : own_error;
    const std::uint32_t largest = load_block<kHasResidual>(work.in + at, error, count, x);
    encode_block<Code, kDithers>(x, error, out, count, scale_for<Code>(largest),
                                 static_cast<std::uint32_t>(at), work.seed);
    const ErrorSquares squares = sum_squares(x, error, count);
    sums.value += squares.value;
    sums.error += squares.error;
    // A value that is not finite must affect one result, not all later ones.
    if (kHasResidual && largest >= kInfinity) std::fill_n(error, count, 0.0F);
    out += sizeof(float) + count;
  }
  return sums;
}

template <typename Half, bool kHasResidual>
REGATTA_INLINE ErrorSquares encode_halves(const Encoding& work) {
  alignas(64) float x[kBlock];
  alignas(64) float own_error[kBlock];
  ErrorSquares sums;
  for (std::size_t at = 0; at < work.count; at += kBlock) {
    const std::size_t count = std::min(kBlock, work.count - at);
    float* const error = kHasResidual ? work.residual + at : own_error;
    std::uint16_t* const bits = reinterpret_cast<std::uint16_t*>(work.out) + at;
    load_block<kHasResidual>(work.in + at, error, count, x);
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i)
      bits[i] = narrow<Half>(x[i]).bits;
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i)
      error[i] = finite_or_zero(x[i] - widen(Half{bits[i]}));
    const ErrorSquares squares = sum_squares(x, error, count);
    sums.value += squares.value;
    sums.error += squares.error;
  }
  return sums;
}

template <typename Code, bool kAdds>
REGATTA_INLINE void decode_blocks(const std::byte* in, float* out, std::size_t all, float factor) {
  for (std::size_t at = 0; at < all; at += kBlock) {
    const std::size_t count = std::min(kBlock, all - at);
    float scale = 0;
    std::memcpy(&scale, in, sizeof scale);
    if constexpr (!kAdds) scale *= factor;
    const auto* codes = reinterpret_cast<const typename Code::Bits*>(in + sizeof scale);
    float* to = out + at;
#pragma omp simd
    for (std::size_t i = 0; i < count; ++i) {
      const float value = Code::widen(codes[i]) * scale;
      to[i] = kAdds ? to[i] + value : value;
    }
    in += sizeof scale + count;
  }
}

template <typename Half, bool kAdds>
REGATTA_INLINE void decode_halves(const std::byte* in, float* out, std::size_t count,
                                  float factor) {
  const auto* halves = reinterpret_cast<const Half*>(in);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    out[i] = kAdds ? out[i] + widen(halves[i]) : widen(halves[i]) * factor;
}

using E4m3 = Fp8Code<3, 7>;
using E5m2 = Fp8Code<2, 15>;

template <bool kHasResidual>
REGATTA_INLINE ErrorSquares encode_as(const Encoding& work) {
  switch (work.kind) {
    case CompressionKind::kBf16:
      return encode_halves<Bf16, kHasResidual>(work);
    case CompressionKind::kF16:
      return encode_halves<F16, kHasResidual>(work);
    case CompressionKind::kFp8E4m3:
      return encode_blocks<E4m3, kHasResidual, false>(work);
    case CompressionKind::kFp8E5m2:
      return encode_blocks<E5m2, kHasResidual, false>(work);
    default:
      return work.seed != 0 ? encode_blocks<Int8Code, kHasResidual, true>(work)
                            : encode_blocks<Int8Code, kHasResidual, false>(work);
  }
}

REGATTA_INLINE ErrorSquares encode_here(const Encoding& work) {
  return work.residual != nullptr ? encode_as<true>(work) : encode_as<false>(work);
}

struct Decoding {
  CompressionKind kind = CompressionKind::kInt8;
  const std::byte* in = nullptr;
  float* out = nullptr;
  std::size_t count = 0;
  float factor = 1;
};

template <bool kAdds>
REGATTA_INLINE void decode_here(const Decoding& work) {
  switch (work.kind) {
    case CompressionKind::kBf16:
      return decode_halves<Bf16, kAdds>(work.in, work.out, work.count, work.factor);
    case CompressionKind::kF16:
      return decode_halves<F16, kAdds>(work.in, work.out, work.count, work.factor);
    case CompressionKind::kFp8E4m3:
      return decode_blocks<E4m3, kAdds>(work.in, work.out, work.count, work.factor);
    case CompressionKind::kFp8E5m2:
      return decode_blocks<E5m2, kAdds>(work.in, work.out, work.count, work.factor);
    default:
      return decode_blocks<Int8Code, kAdds>(work.in, work.out, work.count, work.factor);
  }
}

// One set of loops for each width of vectors.
struct Loops {
  const char* name;
  ErrorSquares (*encode)(const Encoding&);
  void (*decode)(const Decoding&);
  void (*decode_add)(const Decoding&);
};

constexpr Loops kBaseline{"baseline", [](const Encoding& work) { return encode_here(work); },
                          [](const Decoding& work) { decode_here<false>(work); },
                          [](const Decoding& work) { decode_here<true>(work); }};

#if defined(__x86_64__)
#define REGATTA_AVX2 [[gnu::target("avx2")]]
#define REGATTA_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]]

REGATTA_AVX2 ErrorSquares encode_avx2(const Encoding& work) {
  return encode_here(work);
}
REGATTA_AVX2 void decode_avx2(const Decoding& work) {
  decode_here<false>(work);
}
REGATTA_AVX2 void decode_add_avx2(const Decoding& work) {
  decode_here<true>(work);
}
REGATTA_AVX512 ErrorSquares encode_avx512(const Encoding& work) {
  return encode_here(work);
}
REGATTA_AVX512 void decode_avx512(const Decoding& work) {
  decode_here<false>(work);
}
REGATTA_AVX512 void decode_add_avx512(const Decoding& work) {
  decode_here<true>(work);
}
constexpr Loops kAvx2{"avx2", encode_avx2, decode_avx2, decode_add_avx2};
constexpr Loops kAvx512{"avx512", encode_avx512, decode_avx512, decode_add_avx512};

const Loops& best_loops(std::string_view limit) {
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (has_avx512 && limit == "avx512") return kAvx512;
  if (__builtin_cpu_supports("avx2") && limit != "baseline") return kAvx2;
  return kBaseline;
}
#else
const Loops& best_loops(std::string_view) {
  return kBaseline;
}
#endif

std::atomic<const Loops*> chosen = nullptr;

const Loops& loops() {
  const Loops* now = chosen.load(std::memory_order_relaxed);
  if (now == nullptr) chosen.store(now = &best_loops("avx512"), std::memory_order_relaxed);
  return *now;
}

}  // namespace

std::size_t encoded_bytes(CompressionKind kind, std::size_t count) {
  if (kind == CompressionKind::kBf16 || kind == CompressionKind::kF16) return count * 2;
  return count + (count + kBlock - 1) / kBlock * sizeof(float);
}

ErrorSquares encode(const Encoding& encoding) {
  return loops().encode(encoding);
}

void decode(CompressionKind kind, const std::byte* in, float* out, std::size_t count,
            float factor) {
  loops().decode({kind, in, out, count, factor});
}

void decode_add(CompressionKind kind, const std::byte* in, float* sum, std::size_t count) {
  loops().decode_add({kind, in, sum, count, 1});
}

void limit_vectors(const char* level) {
  chosen.store(&best_loops(level), std::memory_order_relaxed);
}

}  // namespace regatta::comm::compress
