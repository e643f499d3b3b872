#include "regatta/model/collective/reduce_kernels.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "regatta/base/core/result.h"
#include "regatta/model/collective/data_type.h"

namespace regatta::collective {
namespace {

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

template <typename T, typename Op>
void combine_four_as(std::byte* dst_bytes, const std::byte* const* sources, std::size_t bytes) {
  auto* dst = reinterpret_cast<T*>(dst_bytes);
  const auto* a = reinterpret_cast<const T*>(sources[0]);
  const auto* b = reinterpret_cast<const T*>(sources[1]);
  const auto* c = reinterpret_cast<const T*>(sources[2]);
  const auto* d = reinterpret_cast<const T*>(sources[3]);
  const std::size_t count = bytes / sizeof(T);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i) {
    const T left = narrow<T>(Op{}(widen(a[i]), widen(b[i])));
    const T right = narrow<T>(Op{}(widen(c[i]), widen(d[i])));
    dst[i] = narrow<T>(Op{}(widen(left), widen(right)));
  }
}

// f(T{}) for the type of the elements.
template <typename F>
void with_type(DataType type, const F& f) {
  switch (type) {
    case DataType::kF32:
      return f(float{});
    case DataType::kF64:
      return f(double{});
    case DataType::kF16:
      return f(F16{});
    case DataType::kBf16:
      return f(Bf16{});
    case DataType::kI8:
      return f(std::int8_t{});
    case DataType::kU8:
      return f(std::uint8_t{});
    case DataType::kI32:
      return f(std::int32_t{});
    case DataType::kI64:
      return f(std::int64_t{});
  }
}

// f(T{}, Op{}); an average adds.
template <typename F>
void with_type_and_op(const Reduction& reduction, const F& f) {
  with_type(reduction.type, [&](auto type) {
    switch (reduction.op) {
      case ReduceOp::kSum:
      case ReduceOp::kAverage:
        return f(type, Add{});
      case ReduceOp::kProduct:
        return f(type, Multiply{});
      case ReduceOp::kMin:
        return f(type, Min{});
      case ReduceOp::kMax:
        return f(type, Max{});
    }
  });
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

template <typename T>
void add_as(double* sum, const std::byte* bytes_at, std::size_t bytes) {
  const auto* in = reinterpret_cast<const T*>(bytes_at);
  const std::size_t count = bytes / sizeof(T);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    sum[i] += static_cast<double>(widen(in[i]));
}

template <typename T>
void round_as(std::byte* bytes_at, const double* sum, std::size_t bytes, double divisor) {
  auto* out = reinterpret_cast<T*>(bytes_at);
  const std::size_t count = bytes / sizeof(T);
#pragma omp simd
  for (std::size_t i = 0; i < count; ++i)
    out[i] = narrow<T>(static_cast<float>(sum[i] / divisor));
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
  with_type_and_op(reduction, [&](auto type, auto op) {
    combine_as<decltype(type), decltype(op)>(dst, a, b, bytes);
  });
}

void combine_four(const Reduction& reduction, std::byte* dst, const std::byte* const* sources,
                  std::size_t bytes) {
  with_type_and_op(reduction, [&](auto type, auto op) {
    combine_four_as<decltype(type), decltype(op)>(dst, sources, bytes);
  });
}

void finish(const Reduction& reduction, std::byte* data, std::size_t bytes) {
  if (reduction.op != ReduceOp::kAverage) return;
  with_type(reduction.type,
            [&](auto type) { divide_as<decltype(type)>(data, bytes, reduction.divisor); });
}

bool can_sum_in_f64(const Reduction& reduction) {
  const bool is_sum = reduction.op == ReduceOp::kSum || reduction.op == ReduceOp::kAverage;
  return is_sum && (reduction.type == DataType::kF32 || reduction.type == DataType::kF16 ||
                    reduction.type == DataType::kBf16);
}

void add_in_f64(DataType type, double* sum, const std::byte* in, std::size_t bytes) {
  if (type == DataType::kF32) return add_as<float>(sum, in, bytes);
  if (type == DataType::kF16) return add_as<F16>(sum, in, bytes);
  add_as<Bf16>(sum, in, bytes);
}

void round_f64(const Reduction& reduction, std::byte* out, const double* sum, std::size_t bytes) {
  const double divisor = reduction.op == ReduceOp::kAverage ? reduction.divisor : 1;
  if (reduction.type == DataType::kF32) return round_as<float>(out, sum, bytes, divisor);
  if (reduction.type == DataType::kF16) return round_as<F16>(out, sum, bytes, divisor);
  round_as<Bf16>(out, sum, bytes, divisor);
}

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

}  // namespace regatta::collective
