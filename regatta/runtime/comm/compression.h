// comm/compression.h: how gradients are compressed between ranks.
//   bf16, f16     half the bytes; f16 overflows beyond 65504
//   int8          blocks of 256 with a scale: 1/3.94 of the bytes, an error of at most max/254
//   fp8_e4m3, fp8_e5m2   the same with 8-bit floats: small values of a block keep their digits
//   top_k         only the largest values, with their places
//   power_sgd     a product of two thin matrices
// The compression error of a call stays in the ErrorFeedback of the tensor and is added to the next
// call's input. Sources: Dettmers, ICLR 2016 (8 bits); Micikevicius et al., "FP8 formats", 2022;
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

// Whether every element has a code of its own: all kinds but none, top_k and power_sgd.
constexpr bool is_elementwise(CompressionKind kind) {
  return kind >= CompressionKind::kBf16 && kind <= CompressionKind::kFp8E5m2;
}

struct CompressionOptions {
  CompressionKind kind = CompressionKind::kNone;
  double fraction = 0.01;  // of the elements that top_k sends, in (0, 1]
  int rank = 4;            // of power_sgd, 1 to 64
  // int8: rounded up or down at random, so that the mean is right. The random numbers differ from
  // rank to rank, and from call to call where an ErrorFeedback counts the calls.
  bool stochastic = false;
  // The kinds that automatic may choose, besides none.
  std::vector<CompressionKind> allowed{CompressionKind::kBf16, CompressionKind::kInt8};
};

// kInvalidInput names the value that is out of range.
Status check(const CompressionOptions& compression);

// The compression error of the calls of one tensor so far. Begins empty; each rank has its own, and
// a checkpoint holds it.
struct ErrorFeedback {
  std::vector<float> residual;  // in the units of the sum; empty: no error yet
  std::vector<float> factor;    // power_sgd's right matrix, from which the next call begins
  std::uint64_t calls = 0;      // the seed of stochastic rounding
};

// With magic, version and checksum; kInvalidInput names the one that is wrong.
std::vector<std::byte> to_bytes(const ErrorFeedback& feedback);
Result<ErrorFeedback> error_feedback_from_bytes(const std::vector<std::byte>& bytes);

// The outcome of a call.
struct CompressionReport {
  CompressionKind kind = CompressionKind::kNone;  // what was used
  // Estimated as sqrt(sum of the squares of all compression errors) over the norm of the result, as
  // if the ranks' errors were independent; the same on every rank.
  double relative_error = 0;
};

}  // namespace regatta::comm::compress
