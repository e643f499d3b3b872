// bench/collective.h: the collectives that are timed: their buffers and their results. Header only,
// and without the rest of Regatta, because the programs of the peers (bench/peers) share it: all
// contenders do the same work.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace regatta::bench {

enum class CollectiveOp {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
};
inline constexpr std::array kCollectiveOps = {
    CollectiveOp::kAllReduce, CollectiveOp::kReduceScatter, CollectiveOp::kAllGather,
    CollectiveOp::kBroadcast, CollectiveOp::kReduce,        CollectiveOp::kGather,
    CollectiveOp::kScatter,   CollectiveOp::kAllToAll};

inline std::string to_string(CollectiveOp op) {
  constexpr std::array kNames = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                 "reduce",     "gather",         "scatter",    "all_to_all"};
  return kNames[static_cast<std::size_t>(op)];
}

inline std::optional<CollectiveOp> collective_op_named(const std::string& name) {
  for (const CollectiveOp op : kCollectiveOps)
    if (to_string(op) == name) return op;
  return std::nullopt;
}

// busbw / algbw, so that busbw compares with the speed of the links: 2(n-1)/n for all_reduce,
// (n-1)/n where every rank has a part, 1 for broadcast and reduce.
// Source: nccl-tests, doc/PERFORMANCE.md. Equal to cost::pass_share(), which the programs of the
// peers do not have.
inline double bus_factor(CollectiveOp op, int ranks) {
  const double pass = static_cast<double>(ranks - 1) / ranks;
  if (op == CollectiveOp::kAllReduce) return 2 * pass;
  return op == CollectiveOp::kBroadcast || op == CollectiveOp::kReduce ? 1 : pass;
}

inline bool has_parts_in(CollectiveOp op) {
  return op == CollectiveOp::kReduceScatter || op == CollectiveOp::kScatter ||
         op == CollectiveOp::kAllToAll;
}
inline bool has_parts_out(CollectiveOp op) {
  return op == CollectiveOp::kAllGather || op == CollectiveOp::kGather ||
         op == CollectiveOp::kAllToAll;
}

// The buffers of one rank in a collective of f32 with root 0. `count`: elements of the call, the
// part of a rank where the operation has parts. A broadcast works on `out` alone.
struct CollectiveShape {
  CollectiveOp op = CollectiveOp::kAllReduce;
  int ranks = 1;
  int rank = 0;
  std::size_t count = 0;

  std::size_t in_count() const {
    return count * (has_parts_in(op) ? static_cast<std::size_t>(ranks) : 1);
  }
  std::size_t out_count() const {
    return count * (has_parts_out(op) ? static_cast<std::size_t>(ranks) : 1);
  }
};

// Bytes of the shortest whole vector of which every rank has an element.
inline std::size_t least_bytes(CollectiveOp op, int ranks) {
  const bool divided = has_parts_in(op) || has_parts_out(op);
  return sizeof(float) * (divided ? static_cast<std::size_t>(ranks) : 1);
}

// `bytes` of the whole vector, rounded down to whole parts.
inline CollectiveShape collective_shape(CollectiveOp op, std::size_t bytes, int ranks, int rank) {
  return {op, ranks, rank, bytes / least_bytes(op, ranks)};
}

// Small whole numbers: every order of adding them gives the same float.
inline float value_of(int rank, std::size_t i) {
  return static_cast<float>(i % 1000) + static_cast<float>(rank);
}
inline float sum_of(int ranks, std::size_t i) {
  const int sum_of_ranks = ranks * (ranks - 1) / 2;
  return static_cast<float>(ranks) * static_cast<float>(i % 1000) +
         static_cast<float>(sum_of_ranks);
}

inline void fill(const CollectiveShape& shape, float* in, float* out) {
  for (std::size_t i = 0; i < shape.in_count(); ++i)
    in[i] = value_of(shape.rank, i);
  const bool gives = shape.op == CollectiveOp::kBroadcast && shape.rank == 0;
  for (std::size_t i = 0; i < shape.out_count(); ++i)
    out[i] = gives ? value_of(0, i) : -1.0F;
}

inline float expected(const CollectiveShape& shape, std::size_t i) {
  const std::size_t mine = static_cast<std::size_t>(shape.rank) * shape.count;
  const auto from = static_cast<int>(i / shape.count);
  switch (shape.op) {
    case CollectiveOp::kAllReduce:
    case CollectiveOp::kReduce:
      return sum_of(shape.ranks, i);
    case CollectiveOp::kReduceScatter:
      return sum_of(shape.ranks, mine + i);
    case CollectiveOp::kAllGather:
    case CollectiveOp::kGather:
      return value_of(from, i % shape.count);
    case CollectiveOp::kBroadcast:
      return value_of(0, i);
    case CollectiveOp::kScatter:
      return value_of(0, mine + i);
    case CollectiveOp::kAllToAll:
      return value_of(from, mine + i % shape.count);
  }
  return 0;
}

// After fill() and the call: how many elements of this rank's result are wrong.
inline long long count_wrong(const CollectiveShape& shape, const float* out) {
  const bool only_root = shape.op == CollectiveOp::kReduce || shape.op == CollectiveOp::kGather;
  if (only_root && shape.rank != 0) return 0;
  long long wrong = 0;
  for (std::size_t i = 0; i < shape.out_count(); ++i)
    wrong += out[i] != expected(shape, i) ? 1 : 0;
  return wrong;
}

}  // namespace regatta::bench
