#include "regatta/model/collective/call.h"

#include <algorithm>
#include <array>

#include "regatta/base/core/stats.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::collective {
namespace {

// Among the bits of a code above those of the reduction.
constexpr std::uint64_t kIsCompressed = std::uint64_t{1} << 26;
constexpr int kCompressionShift = 27;  // four bits: CompressionKind
static_assert(kCompressionKinds.size() <= 16);
constexpr std::array kCompressionNames = {"none",     "bf16",  "f16",       "int8",     "fp8_e4m3",
                                          "fp8_e5m2", "top_k", "power_sgd", "automatic"};
static_assert(kCompressionNames.size() == kCompressionKinds.size());

constexpr std::array kKinds = {"barrier",    "all_reduce",   "reduce_scatter", "all_gather",
                               "broadcast",  "reduce",       "gather",         "scatter",
                               "all_to_all", "all_to_all_v", "all_gather_v",   "reduce_scatter_v"};
constexpr std::array kTypes = {"f32", "f64", "f16", "bf16", "i8", "u8", "i32", "i64"};
constexpr std::array kOps = {"sum", "product", "min", "max", "average"};

// Kinds beyond those of CallKind.
constexpr std::uint64_t kSend = 0x40;
constexpr std::uint64_t kReceive = 0x41;

template <typename Names>
std::string name_at(const Names& names, std::uint64_t index) {
  return index < names.size() ? names[index] : "unknown";
}

std::string kind_name(std::uint64_t code) {
  const std::uint64_t kind = code & 0xffU;
  if (kind == kSend) return "send";
  return kind == kReceive ? "recv" : name_at(kKinds, kind);
}

bool reduces(CallKind kind) {
  return kind == CallKind::kAllReduce || kind == CallKind::kReduceScatter ||
         kind == CallKind::kReduce || kind == CallKind::kReduceScatterV;
}

}  // namespace

std::uint64_t encode_call(const Call& call) {
  std::uint64_t code = static_cast<std::uint64_t>(call.kind);
  if (call.kind != CallKind::kBarrier) code |= static_cast<std::uint64_t>(call.reduction.type) << 8;
  if (reduces(call.kind)) {
    code |= static_cast<std::uint64_t>(call.reduction.op) << 16;
    code |= std::uint64_t{call.reduction.is_ordered} << 24;
    code |= std::uint64_t{call.reduction.sums_in_f64} << 25;
  }
  if (has_root(call.kind)) code |= static_cast<std::uint64_t>(call.root) << 32;
  return code;
}

static_assert(kKinds.size() == kCallKinds);

std::string to_string(CompressionKind kind) {
  return enum_name(kCompressionNames, kind);
}

std::string to_string(CallKind kind) {
  return enum_name(kKinds, kind);
}

std::optional<CallKind> kind_named(const std::string& name) {
  return parse_enum<CallKind>(kKinds, name);
}

bool has_root(CallKind kind) {
  return kind == CallKind::kBroadcast || kind == CallKind::kReduce || kind == CallKind::kGather ||
         kind == CallKind::kScatter;
}

std::uint64_t encode_transfer(bool is_send, int peer) {
  return (is_send ? kSend : kReceive) | static_cast<std::uint64_t>(peer) << 32;
}

std::uint32_t fingerprint(std::uint64_t code, std::uint64_t bytes) {
  return static_cast<std::uint32_t>(splitmix_finish(code * kSplitMixStep ^ bytes) >> 32) | 1U;
}

std::uint64_t encode_compressed(CallKind kind, ReduceOp op, CompressionKind compression) {
  return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(op) << 16 | kIsCompressed |
         static_cast<std::uint64_t>(compression) << kCompressionShift;
}

std::string name_call(std::uint64_t code, std::uint64_t bytes) {
  std::string text = kind_name(code);
  if (bytes > 0) text += " of " + format_bytes(Bytes{static_cast<long long>(bytes)});
  return text;
}

std::string describe_call(std::uint64_t code, std::uint64_t bytes) {
  const auto kind = static_cast<CallKind>(code & 0xffU);
  std::string text = name_call(code, bytes);
  if ((code & 0xffU) == kSend) return text + " to rank " + std::to_string(code >> 32);
  if ((code & 0xffU) == kReceive) return text + " from rank " + std::to_string(code >> 32);
  if (kind == CallKind::kBarrier) return text;
  text += " (" + name_at(kTypes, code >> 8 & 0xffU);
  if (reduces(kind)) text += ", " + name_at(kOps, code >> 16 & 0xffU);
  if ((code >> 24 & 1U) != 0) text += ", deterministic";
  if ((code >> 25 & 1U) != 0) text += ", sums in f64";
  if ((code & kIsCompressed) != 0) {
    const std::uint64_t compression = code >> kCompressionShift & 0xfU;
    text += ", as " + (compression < kCompressionKinds.size()
                           ? to_string(kCompressionKinds[compression])
                           : "unknown");
  }
  text += ")";
  if (has_root(kind)) text += " with root " + std::to_string(code >> 32);
  return text;
}

Error lack_of_memory(const std::string& name, std::size_t bytes) {
  return {Code::kExhausted, name + ": no memory is left for the " +
                                format_bytes(Bytes{static_cast<long long>(bytes)}) +
                                " that it computes in: call it on less at a time, or free memory"};
}

std::size_t in_bytes(const Call& call, int ranks) {
  if (call.parts != nullptr) return end_of(call.parts->give);
  const bool has_parts = call.kind == CallKind::kReduceScatter || call.kind == CallKind::kScatter ||
                         call.kind == CallKind::kAllToAll;
  return has_parts ? call.bytes * static_cast<std::size_t>(ranks) : call.bytes;
}

std::size_t out_bytes(const Call& call, int ranks) {
  if (call.parts != nullptr) return end_of(call.parts->take);
  const bool has_parts = call.kind == CallKind::kAllGather || call.kind == CallKind::kGather ||
                         call.kind == CallKind::kAllToAll;
  return has_parts ? call.bytes * static_cast<std::size_t>(ranks) : call.bytes;
}

std::size_t whole_bytes(const Call& call, int ranks) {
  return std::max(in_bytes(call, ranks), out_bytes(call, ranks));
}

}  // namespace regatta::collective
