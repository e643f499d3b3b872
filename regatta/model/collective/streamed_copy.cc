#include "regatta/model/collective/streamed_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "regatta/model/collective/reduce_kernels.h"

namespace regatta::collective {
namespace {

constexpr std::size_t kLineBytes = 64;

#if defined(__x86_64__)

// `to` is aligned to a line, `lines` of 64 bytes.
__attribute__((target("avx512f"))) void stream_avx512(std::byte* to, const std::byte* from,
                                                      std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, to += kLineBytes, from += kLineBytes)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
}

__attribute__((target("avx2"))) void stream_avx2(std::byte* to, const std::byte* from,
                                                 std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, to += kLineBytes, from += kLineBytes) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + 32));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + 32), b);
  }
}

void stream_sse2(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines * 4; ++i, to += 16, from += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}

using Stream = void (*)(std::byte*, const std::byte*, std::size_t);
Stream best_stream() {
  if (__builtin_cpu_supports("avx512f")) return stream_avx512;
  if (__builtin_cpu_supports("avx2")) return stream_avx2;
  return stream_sse2;
}

// Non-temporal stores are not ordered with the counter that publishes them: end_stream() first.
void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  static const Stream stream_lines = best_stream();
  const std::size_t head = std::min(
      bytes, (kLineBytes - reinterpret_cast<std::uintptr_t>(to) % kLineBytes) % kLineBytes);
  std::memcpy(to, from, head);
  const std::size_t lines = (bytes - head) / kLineBytes;
  stream_lines(to + head, from + head, lines);
  const std::size_t done = head + lines * kLineBytes;
  std::memcpy(to + done, from + done, bytes - done);
}

void end_stream() {
  _mm_sfence();
}

#else

void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}
void end_stream() {}

#endif

}  // namespace

void move_bytes(std::byte* to, const std::byte* from, std::size_t bytes, StoreMode store) {
  if (to == from || bytes == 0) return;
  if (store == StoreMode::kCached) {
    std::memcpy(to, from, bytes);
    return;
  }
  stream(to, from, bytes);
  end_stream();
}

void combine_many(const Reduction& reduction, const CombineTargets& targets,
                  std::span<const std::byte* const> sources, std::size_t bytes) {
  alignas(kLineBytes) std::byte scratch[kReduceBlockBytes];
  for (std::size_t at = 0; at < bytes; at += kReduceBlockBytes) {
    const std::size_t part = std::min(kReduceBlockBytes, bytes - at);
    std::byte* block = targets.cached.empty() ? scratch : targets.cached.front() + at;
    // A block that is written in place must not be changed before all sources were read.
    const bool in_place =
        std::any_of(sources.begin() + 1, sources.end(),
                    [&](const std::byte* source) { return source + at == block; });
    if (in_place) block = scratch;
    reduce_block(reduction, block, sources, at, part);
    for (std::byte* target : targets.cached)
      move_bytes(target + at, block, part, StoreMode::kCached);
    for (std::byte* target : targets.streamed)
      stream(target + at, block, part);
  }
  end_stream();
}

}  // namespace regatta::collective
