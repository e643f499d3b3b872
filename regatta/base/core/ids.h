// core/ids.h: indices that cannot be mixed up; each counts from 0 and is dense in its container.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>

namespace regatta {

template <typename Tag>
struct Id {
  int value = -1;

  friend constexpr auto operator<=>(const Id&, const Id&) = default;
  constexpr bool is_valid() const { return value >= 0; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
};

using Rank = Id<struct RankTag>;        // a process of a job
using ServerId = Id<struct ServerTag>;  // index into topo::Cluster::servers
using NodeId = Id<struct NodeTag>;      // index into topo::Graph::nodes
using LinkId = Id<struct LinkTag>;      // index into topo::Graph::links

// `index` >= 0.
constexpr std::size_t as_index(std::integral auto index) {
  return static_cast<std::size_t>(index);
}

// sequence[index]; 0 <= `index` < the sequence's size.
template <typename Sequence>
constexpr decltype(auto) at(Sequence&& sequence, std::integral auto index) {
  return sequence[static_cast<std::size_t>(index)];
}

}  // namespace regatta

template <typename Tag>
struct std::hash<regatta::Id<Tag>> {
  std::size_t operator()(regatta::Id<Tag> id) const { return std::hash<int>{}(id.value); }
};
