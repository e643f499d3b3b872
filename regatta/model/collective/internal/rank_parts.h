// collective/internal/rank_parts.h: a vector divided between the ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/collective/data_type.h"

namespace regatta::collective {

// The part of each rank.
class RankParts {
 public:
  explicit RankParts(std::vector<ByteRange> parts) : parts_(std::move(parts)) {}
  // `count` elements in as equal parts as they allow.
  RankParts(std::size_t count, std::size_t element_bytes, int parts) {
    const auto n = static_cast<std::size_t>(parts);
    std::size_t from = 0;
    for (std::size_t part = 0; part < n; ++part) {
      const std::size_t elements = count / n + (part < count % n ? 1 : 0);
      parts_.push_back({from, elements * element_bytes});
      from = parts_.back().end();
    }
  }

  const ByteRange& of(int rank) const { return at(parts_, rank); }
  std::size_t begin(int rank) const { return of(rank).from; }
  std::size_t bytes(int rank) const { return of(rank).bytes; }
  // The end of the vector, and its longest part.
  std::size_t end() const { return end_of(parts_); }
  std::size_t bytes_max() const {
    std::size_t bytes = 0;
    for (const ByteRange& part : parts_)
      bytes = std::max(bytes, part.bytes);
    return bytes;
  }

 private:
  std::vector<ByteRange> parts_;
};

}  // namespace regatta::collective
