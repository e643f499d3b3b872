// comm/internal/compress/codec.h: the element-wise codes as byte ranges: pure loops that run near
// the speed of memory, for the widest vectors that the processor has. All versions give the same
// codes.
//
// Bytes: bf16 and f16 two an element. int8 and fp8 in blocks of kBlock elements, the last one
// shorter: an f32 scale, then a byte an element. With m the largest magnitude of a block, at most
//   int8                max error m / 254 (stochastic: m / 127)
//   fp8_e4m3, fp8_e5m2  |x| / 16 + m 2^-18, |x| / 8 + m 2^-32
//   bf16, f16           |x| / 256; |x| / 2048 + 2^-25
// and float rounding. A block with an infinity or NaN becomes NaN, one below 2^-100 zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "regatta/runtime/comm/compression.h"

namespace regatta::comm::compress {

inline constexpr std::size_t kBlock = 256;

// The bytes of `count` elements; kind is element-wise.
std::size_t encoded_bytes(CompressionKind kind, std::size_t count);

// Sums over the elements of a call.
struct ErrorSquares {
  double value = 0;  // of the values to encode
  double error = 0;  // of the encoding errors
};

struct Encoding {
  CompressionKind kind = CompressionKind::kInt8;
  const float* in = nullptr;
  float* residual = nullptr;  // or null; added to `in`, replaced by the encoding errors
  std::byte* out = nullptr;   // encoded_bytes()
  std::size_t count = 0;
  std::uint32_t seed = 0;  // not 0: int8 rounds at random
};
ErrorSquares encode(const Encoding& encoding);

// out = the values of `in` times `factor`.
void decode(CompressionKind kind, const std::byte* in, float* out, std::size_t count, float factor);
// sum += the values of `in`.
void decode_add(CompressionKind kind, const std::byte* in, float* sum, std::size_t count);

// For tests: from now on no wider vectors than this: "baseline", "avx2" or "avx512".
void limit_vectors(const char* level);

}  // namespace regatta::comm::compress
