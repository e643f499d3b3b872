// collective/internal/server_rows.h: the ranks as rows of equal length, one for each server: common
// to the reductions that go inside the servers, between them and inside again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/base/core/ids.h"

namespace regatta::collective {

using ServerRows = std::vector<std::vector<int>>;

inline int rank_at(const ServerRows& rows, int server, int local) {
  return at(rows, server)[as_index(local)];
}

// The purpose of a message; a pair exchanges one of each kind, chunk and index.
enum class MessagePurpose : std::uint32_t { kGather, kReduce, kResult, kSpread };
inline std::uint32_t tag_of(std::size_t chunk, MessagePurpose purpose, int index) {
  return static_cast<std::uint32_t>(chunk) << 16 | static_cast<std::uint32_t>(purpose) << 14 |
         static_cast<std::uint32_t>(index);
}

}  // namespace regatta::collective
