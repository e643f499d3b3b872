// Rates of the codes on one core, in bytes of f32 a second: 1 MiB at a time, which lies in the
// cache as a chunk of a schedule does, and 64 MiB, which does not.
#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>

#include "regatta/runtime/comm/internal/compress/codec.h"
#include "regatta/runtime/comm/internal/compress/power_sgd.h"
#include "regatta/runtime/comm/internal/compress/top_k.h"

namespace regatta::comm::compress {
namespace {

std::vector<float> gradient(std::size_t count) {
  std::vector<float> values(count);
  unsigned state = 1;
  for (float& x : values) {
    state = state * 1664525U + 1013904223U;
    x = static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
  }
  return values;
}

// args: kind, bytes of f32, residual or not.
void encode_kind(benchmark::State& state) {
  const auto kind = static_cast<CompressionKind>(state.range(0));
  const std::vector<float> in = gradient(static_cast<std::size_t>(state.range(1)) / 4);
  std::vector<float> residual(in.size());
  std::vector<std::byte> code(encoded_bytes(kind, in.size()));
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(encode({.kind = kind,
                                     .in = in.data(),
                                     .residual = state.range(2) != 0 ? residual.data() : nullptr,
                                     .out = code.data(),
                                     .count = in.size()}));
  state.SetBytesProcessed(state.iterations() * state.range(1));
  state.SetLabel(to_string(kind));
}

// args: kind, bytes of f32, adds or not.
void decode_kind(benchmark::State& state) {
  const auto kind = static_cast<CompressionKind>(state.range(0));
  std::vector<float> out = gradient(static_cast<std::size_t>(state.range(1)) / 4);
  std::vector<std::byte> code(encoded_bytes(kind, out.size()));
  encode({.kind = kind, .in = out.data(), .out = code.data(), .count = out.size()});
  for ([[maybe_unused]] auto _ : state) {
    if (state.range(2) != 0)
      decode_add(kind, code.data(), out.data(), out.size());
    else
      decode(kind, code.data(), out.data(), out.size(), 1);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(1));
  state.SetLabel(to_string(kind));
}

void top_k(benchmark::State& state) {
  const std::vector<float> in = gradient(1 << 20);
  std::vector<float> residual(in.size());
  std::vector<TopKEntry> entries(top_k_count(in.size(), 0.01));
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(select_top_k(in, residual, entries));
  state.SetBytesProcessed(state.iterations() * static_cast<long long>(in.size() * sizeof(float)));
}

// All products of a call on one rank. args: rank.
void power_sgd(benchmark::State& state) {
  std::vector<float> m = gradient(1 << 20);
  const MatrixShape shape = shape_matrix(m.size(), static_cast<int>(state.range(0)));
  std::vector<float> q = first_factor(shape);
  std::vector<float> p(shape.left());
  for ([[maybe_unused]] auto _ : state) {
    multiply(shape, m, q, p);
    make_orthonormal(shape, p);
    multiply_transposed(shape, m, p, q);
    benchmark::DoNotOptimize(expand(shape, p, q, m, 1));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<long long>(m.size() * sizeof(float)));
}

constexpr auto kBf16 = static_cast<long long>(CompressionKind::kBf16);
constexpr auto kFp8E5m2 = static_cast<long long>(CompressionKind::kFp8E5m2);

void all_codes(benchmark::internal::Benchmark* benchmark) {
  for (long long kind = kBf16; kind <= kFp8E5m2; ++kind)
    for (const long long bytes : {1LL << 20, 64LL << 20})
      for (const long long flag : {0LL, 1LL})
        benchmark->Args({kind, bytes, flag});
}

BENCHMARK(encode_kind)->ArgNames({"kind", "bytes", "residual"})->Apply(all_codes);
BENCHMARK(decode_kind)->ArgNames({"kind", "bytes", "adds"})->Apply(all_codes);
BENCHMARK(top_k);
BENCHMARK(power_sgd)->ArgName("rank")->Arg(1)->Arg(4);

}  // namespace
}  // namespace regatta::comm::compress
