#include "regatta/runtime/comm/compression.h"

#include <cstring>
#include <span>

#include <fmt/core.h>

#include "regatta/base/core/stats.h"

namespace regatta::comm::compress {
namespace {

struct Header {
  std::array<char, 4> magic{'r', 'g', 'f', 'b'};
  std::uint32_t version = 1;
  std::uint64_t calls = 0;
  std::uint64_t residual = 0;  // elements
  std::uint64_t factor = 0;
};

Error broken(const std::string& what) {
  return {Code::kInvalidInput, "gradient feedback: " + what + "; start without it"};
}

}  // namespace

std::optional<CompressionKind> compression_kind_named(std::string_view name) {
  for (const CompressionKind kind : kCompressionKinds)
    if (to_string(kind) == name) return kind;
  return std::nullopt;
}

Status check(const CompressionOptions& compression) {
  if (!(compression.fraction > 0 && compression.fraction <= 1))
    return Error{Code::kInvalidInput,
                 fmt::format("compression: the fraction {} of top_k is not in (0, 1]; give one",
                             compression.fraction)};
  if (compression.rank < 1 || compression.rank > 64)
    return Error{Code::kInvalidInput,
                 fmt::format("compression: the rank {} of power_sgd is not from 1 to 64; give one",
                             compression.rank)};
  for (const CompressionKind kind : compression.allowed)
    if (!is_elementwise(kind))
      return Error{Code::kInvalidInput,
                   fmt::format("compression: automatic cannot choose {}; allow bf16, f16, int8, "
                               "fp8_e4m3 or fp8_e5m2",
                               to_string(kind))};
  return {};
}

std::vector<std::byte> to_bytes(const ErrorFeedback& feedback) {
  const Header header{.calls = feedback.calls,
                      .residual = feedback.residual.size(),
                      .factor = feedback.factor.size()};
  std::vector<std::byte> bytes(sizeof header + sizeof(std::uint64_t) +
                               (header.residual + header.factor) * sizeof(float));
  std::byte* to = bytes.data();
  const auto put = [&to](const void* from, std::size_t size) {
    if (size > 0) std::memcpy(to, from, size);
    to += size;
  };
  put(&header, sizeof header);
  put(feedback.residual.data(), header.residual * sizeof(float));
  put(feedback.factor.data(), header.factor * sizeof(float));
  const std::uint64_t sum = fnv1a_words(std::span(bytes).first(bytes.size() - sizeof sum));
  put(&sum, sizeof sum);
  return bytes;
}

Result<ErrorFeedback> error_feedback_from_bytes(const std::vector<std::byte>& bytes) {
  Header header;
  std::uint64_t sum = 0;
  constexpr std::size_t kAround = sizeof header + sizeof sum;
  if (bytes.size() < kAround) return broken("its head is cut off");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != Header{}.magic) return broken("these bytes are something else");
  if (header.version != Header{}.version)
    return broken(
        fmt::format("version {} is not known here, only {}", header.version, Header{}.version));
  const std::uint64_t elements = (bytes.size() - kAround) / sizeof(float);
  if (header.residual > elements || header.factor != elements - header.residual ||
      bytes.size() != kAround + elements * sizeof(float))
    return broken(fmt::format("{} bytes do not fit its head", bytes.size()));
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  if (sum != fnv1a_words(std::span(bytes).first(bytes.size() - sizeof sum)))
    return broken("its content changed since it was written");
  ErrorFeedback feedback{.residual = std::vector<float>(header.residual),
                         .factor = std::vector<float>(header.factor),
                         .calls = header.calls};
  const std::byte* from = bytes.data() + sizeof header;
  for (std::vector<float>* part : {&feedback.residual, &feedback.factor}) {
    const std::size_t size = part->size() * sizeof(float);
    if (size > 0) std::memcpy(part->data(), from, size);
    from += size;
  }
  return feedback;
}

}  // namespace regatta::comm::compress
