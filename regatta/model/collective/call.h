// collective/call.h: the arguments of a collective, and those that all ranks must agree on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/collective/data_type.h"
#include "regatta/model/collective/reduce_kernels.h"

namespace regatta::collective {

// How the values of a compressed all-reduce travel (comm/compression.h).
enum class CompressionKind : std::uint8_t {
  kNone,
  kBf16,
  kF16,
  kInt8,
  kFp8E4m3,
  kFp8E5m2,
  kTopK,
  kPowerSgd,
  kAutomatic,
};
inline constexpr std::array kCompressionKinds = {
    CompressionKind::kNone, CompressionKind::kBf16,     CompressionKind::kF16,
    CompressionKind::kInt8, CompressionKind::kFp8E4m3,  CompressionKind::kFp8E5m2,
    CompressionKind::kTopK, CompressionKind::kPowerSgd, CompressionKind::kAutomatic};

// "none", "bf16", "f16", "int8", "fp8_e4m3", "fp8_e5m2", "top_k", "power_sgd", "automatic".
std::string to_string(CompressionKind kind);

enum class CallKind : std::uint8_t {
  kBarrier,
  kAllReduce,      // in, out: `bytes`
  kReduceScatter,  // in: bytes x ranks, out: bytes
  kAllGather,      // in: bytes, out: bytes x ranks
  kBroadcast,      // out: bytes, on every rank
  kReduce,         // in: bytes, out: bytes on the root
  kGather,         // in: bytes, out: bytes x ranks on the root
  kScatter,        // in: bytes x ranks on the root, out: bytes
  kAllToAll,       // in, out: bytes x ranks
  // Parts of any length (VaryingParts):
  kAllToAllV,
  kAllGatherV,
  kReduceScatterV,
};

// By rank of the communicator.
struct VaryingParts {
  std::vector<ByteRange> give;  // the part of `in` for each; the same for all in an all_gather_v
  std::vector<ByteRange> take;  // the part of `out` from each
  // Arrived parts of a reduction inside the server, by rank; `take` lies in it. Null there: no
  // memory was left.
  std::unique_ptr<std::byte[]> arrivals;
};

inline constexpr std::size_t kCallKinds = 12;

struct Call {
  CallKind kind = CallKind::kBarrier;
  Reduction reduction;
  int root = 0;
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t bytes = 0;  // a multiple of the element size; 0 where the parts vary
  std::shared_ptr<const VaryingParts> parts = nullptr;  // where they vary
};

// All that must be the same on all ranks, except the bytes, in one word; 0 only for a barrier.
std::uint64_t encode_call(const Call& call);
std::string to_string(CallKind kind);
// Whether one rank sends or receives all. Its ranks end at very different times; the last counts.
bool has_root(CallKind kind);
std::optional<CallKind> kind_named(const std::string& name);
// The same word for a send or a receive; `peer`: the rank of the world at the other end.
std::uint64_t encode_transfer(bool is_send, int peer);
// A call in 32 bits, for the header of each of its packets; never 0.
std::uint32_t fingerprint(std::uint64_t code, std::uint64_t bytes);
// encode_call() of a call whose f32 values travel compressed.
std::uint64_t encode_compressed(CallKind kind, ReduceOp op, CompressionKind compression);
// For messages, from the two words that a rank shows: "all_reduce of 4 MiB", and with all that must
// agree, "all_reduce of 4 MiB (f32, sum)", "recv of 1 MiB from rank 2".
std::string name_call(std::uint64_t code, std::uint64_t bytes);
std::string describe_call(std::uint64_t code, std::uint64_t bytes);

// The error of the call `name` ("rank 1: all_reduce") that could not allocate `bytes`.
Error lack_of_memory(const std::string& name, std::size_t bytes);

// How far `in` and `out` reach: bytes x ranks where the buffer has a part for every rank.
std::size_t in_bytes(const Call& call, int ranks);
std::size_t out_bytes(const Call& call, int ranks);
// Bytes of the whole vector: the larger of the two.
std::size_t whole_bytes(const Call& call, int ranks);

}  // namespace regatta::collective
