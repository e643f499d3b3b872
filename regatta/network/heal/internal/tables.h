// heal/internal/tables.h: the routes of a fabric's switches as they are installed, and the fewest
// changes that turn them into what was decided.
#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/network/heal/internal/decide.h"
#include "regatta/network/heal/internal/spread.h"

namespace regatta::heal {

// Intended route of one switch to `leaf`.
struct RouteChange {
  NodeId node;
  NodeId leaf;
  std::vector<Part> parts;
  std::vector<std::uint32_t> withdrawn;  // next hops that it has now and shall not have
  std::vector<std::uint32_t> returned;   // that it has not and shall have

  friend bool operator==(const RouteChange&, const RouteChange&) = default;
};

// All hops of the route, each once, in their order of first mention.
std::vector<std::uint32_t> hops_of(std::span<const Part> parts);

class Tables {
 public:
  // As they are meant to be.
  explicit Tables(const FabricPaths& paths) : paths_(paths) {}

  std::vector<Part> parts(NodeId node, NodeId leaf) const;
  // Sets an installed route; routes that are not set are as designed.
  void set(NodeId node, NodeId leaf, std::vector<Part> parts);

  // Changes that `decision` needs, ordered so that a path is removed near its start first: leaves
  // before spines. Empty when all is as decided.
  std::vector<RouteChange> changes(const Decision& decision) const;
  void apply(std::span<const RouteChange> changes);

  // Next hops that are missing somewhere: faults of place kHop that explain the installed routes.
  // For a healer that replaces another.
  std::vector<Fault> missing() const;

  // The current routes of `node` that use this directed link: a kernel forgets them when the
  // interface goes off.
  std::vector<RouteChange> through(NodeId node, std::uint32_t link) const;

 private:
  using Key = std::pair<int, int>;  // leaf, node

  const FabricPaths& paths_;
  std::map<Key, std::vector<Part>> altered_;  // where they are not as meant
};

}  // namespace regatta::heal
