// The operations of communicator.h whose parts vary.
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "regatta/runtime/comm/internal/communicator_impl.h"

namespace regatta::comm {
namespace {

// In bytes.
std::vector<ByteRange> ranges_of(const Parts& parts, DataType type) {
  std::vector<ByteRange> ranges;
  std::size_t next = 0;
  for (std::size_t rank = 0; rank < parts.counts.size(); ++rank) {
    const std::size_t from = parts.offsets.empty() ? next : parts.offsets[rank] * size_of(type);
    ranges.push_back({from, parts.counts[rank] * size_of(type)});
    next = ranges.back().end();
  }
  return ranges;
}

}  // namespace

std::string Communicator::Impl::validate(const std::string& call, const Parts& parts) const {
  if (auto why = validate(call, Rank{0}); !why.empty()) return why;
  const std::size_t ranks = group->members.size();
  const std::size_t offsets = parts.offsets.empty() ? ranks : parts.offsets.size();
  if (parts.counts.size() != ranks || offsets != ranks)
    return call + ": " + std::to_string(parts.counts.size()) + " counts and " +
           std::to_string(parts.offsets.size()) + " offsets for " + std::to_string(ranks) +
           " ranks: give one of each rank";
  return {};
}

Handle Communicator::all_to_all_v(const void* in, const Parts& give, void* out, const Parts& take,
                                  DataType type) {
  for (const Parts& parts : {give, take})
    if (const auto why = impl_->validate("all_to_all_v", parts); !why.empty())
      return Impl::failed(Code::kInvalidInput, why);
  const std::size_t own = rank().index();
  if (give.counts[own] != take.counts[own])
    return Impl::failed(Code::kInvalidInput,
                        "all_to_all_v: rank " + std::to_string(own) + " gives " +
                            std::to_string(give.counts[own]) + " elements to itself and takes " +
                            std::to_string(take.counts[own]) + ": make them equal");
  auto parts = std::make_shared<VaryingParts>();
  parts->give = ranges_of(give, type);
  parts->take = ranges_of(take, type);
  return impl_->collective({.kind = CallKind::kAllToAllV,
                            .reduction = impl_->reduction(type),
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .parts = std::move(parts)});
}

Handle Communicator::all_gather_v(const void* in, void* out, const Parts& parts, DataType type) {
  if (const auto why = impl_->validate("all_gather_v", parts); !why.empty())
    return Impl::failed(Code::kInvalidInput, why);
  auto varying = std::make_shared<VaryingParts>();
  varying->take = ranges_of(parts, type);
  varying->give.assign(parts.counts.size(), {0, varying->take[rank().index()].bytes});
  return impl_->collective({.kind = CallKind::kAllGatherV,
                            .reduction = impl_->reduction(type),
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .parts = std::move(varying)});
}

Handle Communicator::reduce_scatter_v(const void* in, const Parts& parts, void* out, DataType type,
                                      ReduceOp op) {
  if (const auto why = impl_->validate("reduce_scatter_v", parts); !why.empty())
    return Impl::failed(Code::kInvalidInput, why);
  auto varying = std::make_shared<VaryingParts>();
  varying->give = ranges_of(parts, type);
  const std::size_t own = varying->give[rank().index()].bytes;
  for (std::size_t peer = 0; peer < parts.counts.size(); ++peer)
    varying->take.push_back({own * peer, own});
  // Without memory the call continues, and its group fails on all ranks.
  if (impl_->shm != nullptr)
    varying->arrivals.reset(new (std::nothrow) std::byte[own * parts.counts.size()]);
  return impl_->collective({.kind = CallKind::kReduceScatterV,
                            .reduction = impl_->reduction(type, op),
                            .in = bytes_of(in),
                            .out = bytes_of(out),
                            .parts = std::move(varying)});
}

}  // namespace regatta::comm
