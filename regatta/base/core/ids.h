// core/ids.h: indices that cannot be mixed up; each counts from 0 and is dense in its container.
#pragma once

#include <compare>
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

}  // namespace regatta

template <typename Tag>
struct std::hash<regatta::Id<Tag>> {
  std::size_t operator()(regatta::Id<Tag> id) const { return std::hash<int>{}(id.value); }
};
