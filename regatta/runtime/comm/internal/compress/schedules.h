// comm/internal/compress/schedules.h: compressed reductions as schedules. With p ranks, S the bytes
// of the vector in f32 and c the encoded bytes of a byte (int8: 0.254), a rank sends:
//   two_step_all_reduce      2 steps, 2(p-1)/p c S: every rank sends every owner its part
//                            encoded; the owner decodes, adds in f32 in rank order and sends
//                            the sum back encoded
//   one_step_reduce_scatter  1 step, (p-1)/p c S, without the second step; S of p parts
//   top_k_all_reduce         1 step, (p-1) k entries of 8 bytes to every rank
//   power_sgd_all_reduce     2 steps, (p-1) rank rows and (p-1) rank columns f32 to every rank: of
//                            n = S/4 elements about sqrt(n) each, so (p-1) rank 2 sqrt(S) bytes a
//                            step, 4 (p-1) rank sqrt(S) in all
// A value is encoded at most twice for every p: once by its rank, once in the sum. The result has
// the same bits on every rank: all decode the same codes. Vectors are cut into chunks, so that
// encoding overlaps with communication. Source: ZeRO++, arXiv 2306.10209 (decode before the
// addition).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "regatta/model/collective/algorithms.h"
#include "regatta/model/collective/schedule.h"
#include "regatta/runtime/comm/compression.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/compress/codec.h"

namespace regatta::comm::compress {

// The input of one rank. `in` may be `out`. Lives until the schedule has run.
struct CompressionInput {
  const float* in = nullptr;
  float* out = nullptr;
  std::size_t count = 0;      // of `out`
  float* residual = nullptr;  // added to `in` and updated; null: the compression error is dropped
  float scale = 1;            // of the result: an average has 1/p
  CompressionKind kind = CompressionKind::kInt8;
  std::uint32_t seed = 0;  // not 0: int8 rounds at random
};

// Results of the steps of a call; complete when the schedule has run. started_s may be read before.
struct ReductionStats {
  // By part: the result and its compression error; the same on all ranks.
  std::vector<ErrorSquares> parts;
  std::atomic<double> started_s = 0;  // when the first step ran; 0: none did
  std::vector<float> factor;          // power_sgd: for the next call
  // For a call without an ErrorFeedback whose steps need a place for their compression error.
  std::vector<float> residual;

  // Called by each step that may be the first.
  void note_start();
  double relative_error() const;
};

// `vector.kind` is element-wise. The same on all ranks, except the addresses.
void two_step_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                         const CompressionInput& vector,
                         const std::shared_ptr<ReductionStats>& stats);
// in: count * world_size elements; `out` may be this rank's part of it. Where it overlaps `in` in
// another manner, the result lies in scratch memory until all of `in` was read. The statistics are
// those of this rank.
void one_step_reduce_scatter(CollectiveSchedule& schedule, const GroupPosition& self,
                             const CompressionInput& vector,
                             const std::shared_ptr<ReductionStats>& stats);

// Sends the given fraction of every 2^20 elements; vector.residual is not null.
void top_k_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                      const CompressionInput& vector, double fraction,
                      const std::shared_ptr<ReductionStats>& stats);
// stats->factor: the first factor, with the size of shape_matrix(), or empty. vector.residual is
// not null.
void power_sgd_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                          const CompressionInput& vector, int rank,
                          const std::shared_ptr<ReductionStats>& stats);

}  // namespace regatta::comm::compress
