#include "regatta/runtime/comm/internal/reduce_many.h"

#include <array>
#include <cstring>

#include "regatta/base/core/check.h"

namespace regatta::comm {
namespace {

using Sources = std::span<const std::byte* const>;

constexpr std::size_t kLevelsMax = 20;  // of a tree over a million ranks
constexpr std::size_t kElementsMax = kReduceBlockBytes / 2;

struct Tree {
  const Reduction& reduction;
  std::size_t at;
  std::size_t bytes;
  std::byte (*sides)[kReduceBlockBytes];  // by level: where the right sides come together

  // Where the value of the sources lies: `into`, or the source itself where there is one.
  const std::byte* reduce(Sources sources, std::byte* into, std::size_t level) {
    if (sources.size() == 1) return sources[0] + at;
    if (sources.size() == 4) {
      const std::array four{sources[0] + at, sources[1] + at, sources[2] + at, sources[3] + at};
      combine_four(reduction, into, four.data(), bytes);
      return into;
    }
    REGATTA_CHECK(level < kLevelsMax);
    const auto left_ranks = static_cast<std::size_t>(left_side(static_cast<int>(sources.size())));
    const std::byte* left = reduce(sources.first(left_ranks), into, level + 1);
    const std::byte* right = reduce(sources.subspan(left_ranks), sides[level], level + 1);
    combine(reduction, into, left, right, bytes);
    return into;
  }
};

void sum_in_f64(const Reduction& reduction, std::byte* dst, Sources sources, std::size_t at,
                std::size_t bytes) {
  alignas(64) std::array<double, kElementsMax> sum;  // NOLINT(*-member-init): what is used is set
  std::memset(sum.data(), 0, bytes / size_of(reduction.type) * sizeof(double));
  for (const std::byte* source : sources)
    add_in_f64(reduction.type, sum.data(), source + at, bytes);
  round_f64(reduction, dst, sum.data(), bytes);
}

}  // namespace

void reduce_block(const Reduction& reduction, std::byte* dst, Sources sources, std::size_t at,
                  std::size_t bytes) {
  if (reduction.sums_in_f64 && can_sum_in_f64(reduction))
    return sum_in_f64(reduction, dst, sources, at, bytes);
  if (sources.size() == 1) {
    if (dst != sources[0] + at) std::memcpy(dst, sources[0] + at, bytes);
  } else if (sources.size() > 3) {
    alignas(64) std::byte sides[kLevelsMax][kReduceBlockBytes];
    Tree tree{.reduction = reduction, .at = at, .bytes = bytes, .sides = sides};
    tree.reduce(sources, dst, 0);
  } else {
    combine(reduction, dst, sources[0] + at, sources[1] + at, bytes);
    for (std::size_t i = 2; i < sources.size(); ++i)
      combine(reduction, dst, dst, sources[i] + at, bytes);
  }
  finish(reduction, dst, bytes);
}

}  // namespace regatta::comm
