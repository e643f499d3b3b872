// comm/compression.h: how a gradient is made smaller for the way between ranks.
//   bf16, f16     half the bytes; f16 overflows beyond 65504
//   int8          blocks of 256 with a scale: 1/3.94 of the bytes, an error of at most max/254
//   fp8_e4m3, fp8_e5m2   the same with 8-bit floats: small values of a block keep their digits
//   top_k         the largest values alone, with their places
//   power_sgd     a product of two thin matrices
// What a call leaves out stays in the ErrorFeedback of the tensor and is added to the next call's
// input. Sources: Dettmers, ICLR 2016 (8 bits); Micikevicius et al., "FP8 formats", 2022;
// Karimireddy et al., ICML 2019 (error feedback); Lin et al., ICLR 2018 (top-k); Vogels et al.,
// NeurIPS 2019 (PowerSGD).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm::compress {

using collective::CompressionKind;
using collective::kCompressionKinds;

// As to_string(CompressionKind) writes it.
std::optional<CompressionKind> compression_kind_named(std::string_view name);

// Whether every element has a code of its own, as all but none, top_k and power_sgd.
constexpr bool is_elementwise(CompressionKind kind) {
  return kind >= CompressionKind::kBf16 && kind <= CompressionKind::kFp8E5m2;
}

struct CompressionOptions {
  CompressionKind kind = CompressionKind::kNone;
  double fraction = 0.01;  // of the elements that top_k sends, in (0, 1]
  int rank = 4;            // of power_sgd, 1 to 64
  // int8: rounded up or down by chance, which is right on average. The chance differs from rank to
  // rank, and from call to call where there is an ErrorFeedback, which counts them.
  bool stochastic = false;
  // What automatic may choose, besides none.
  std::vector<CompressionKind> allowed{CompressionKind::kBf16, CompressionKind::kInt8};
};

// kInvalidInput names the value out of its range.
Status check(const CompressionOptions& compression);

// What calls left out of one tensor. Begins empty; belongs to a rank, and in a checkpoint.
struct ErrorFeedback {
  std::vector<float> residual;  // in the units of the sum; empty: nothing was left out yet
  std::vector<float> factor;    // power_sgd's right matrix: where the next call begins
  std::uint64_t calls = 0;      // the seed of stochastic rounding
};

// With magic, version and checksum. from_bytes: kInvalidInput says what is wrong with them.
std::vector<std::byte> to_bytes(const ErrorFeedback& feedback);
Result<ErrorFeedback> error_feedback_from_bytes(const std::vector<std::byte>& bytes);

// What came of a call.
struct CompressionReport {
  CompressionKind kind = CompressionKind::kNone;  // what was used
  // Of the result, estimated as sqrt(sum of the squares of all that was left out) over the norm of
  // the result, as if the ranks' errors were independent; the same on every rank.
  double relative_error = 0;
};

}  // namespace regatta::comm::compress
