// probe/internal/measured_paths.h: paths of probes as traceroutes show them, compared with those of
// the matrix. A switch whose hash is not the one that was planned with sends some of
// its paths elsewhere: those are unknown until all their routers have answered, twice. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

// A router answered that is not on the planned path: the switches hash differently.
struct DivergentPath {
  std::uint32_t path = 0;
  std::uint32_t planned = 0;  // directed link
  std::uint32_t taken = 0;    // the same
};

// After a path was first seen elsewhere: what it does then is believed.
inline constexpr Seconds kCheckAfter{3};

class MeasuredPaths {
 public:
  // The path of a traceroute compared with the plan.
  enum class PathMatch : std::uint8_t { kAsPlanned, kElsewhere, kElsewhereAsKnown };

  // All must outlive this; the paths of the matrix may be replaced by consume_measured_paths().
  MeasuredPaths(const topo::Graph& graph, const fabric::Routes& routes, const Matrix& matrix);

  // Handles a trace of a path of the matrix, with as many hops as it has routers. While something
  // is broken any switch may route paths around it: then nothing found elsewhere is kept.
  PathMatch accept(const Trace& trace, bool has_broken, Seconds now);

  std::size_t count() const { return paths_.size(); }
  // Routers said that the path leads there, as far as they answered.
  bool is_confirmed(std::uint32_t path) const { return paths_[path].confirmed > 0; }
  bool is_elsewhere(std::uint32_t path) const { return paths_[path].is_elsewhere; }
  // How many traceable paths are neither elsewhere nor without an answer.
  std::size_t confirmed() const;
  std::size_t elsewhere() const { return elsewhere_; }
  // No path was ever found elsewhere and taken as measured: also connections go as is computed.
  bool is_hash_known() const { return is_hash_known_; }

  // Whether a switch that sent paths as planned sends them elsewhere now: all paths need to be
  // traced again. True once.
  bool consume_rehash() { return std::exchange(has_rehashed_, false); }
  // Paths found elsewhere since the last call.
  std::vector<DivergentPath> consume_divergent_paths() { return std::exchange(fresh_, {}); }
  // By path, if anything of it is new since the last call: whether its route is unknown. Also
  // unknown are paths elsewhere, and those beyond a switch that was seen to hash otherwise, unless
  // routers behind it have confirmed them since.
  std::optional<std::vector<bool>> consume_unknown_paths();
  // How many these were at the last call.
  std::size_t unknown() const { return unknown_; }
  // All paths as they are known now, if routers have reported whole paths that differ from the
  // matrix; none if there is no such path. The caller puts them into the matrix, and then the path
  // counts as confirmed.
  std::optional<fabric::Paths> consume_measured_paths();

 private:
  struct Path {
    // Leading links that routers have confirmed; the first one is no news.
    std::uint32_t confirmed = 0;
    Seconds confirmed_at;
    bool is_elsewhere = false;
    Seconds elsewhere_at;                 // when that was found
    std::vector<std::uint32_t> measured;  // links; empty: as in the matrix, or not known as a whole
  };

  std::optional<std::uint32_t> link_to(std::uint32_t router) const;
  std::vector<std::uint32_t> measure(const Trace& trace) const;
  std::optional<DivergentPath> leads_elsewhere(const Trace& trace) const;
  void keep_elsewhere(const DivergentPath& found, Seconds now);
  void confirm(const Trace& trace, Seconds now);
  bool is_unknown(std::uint32_t path) const;

  const topo::Graph& graph_;
  const fabric::Routes& routes_;
  const Matrix& matrix_;
  std::vector<Path> paths_;
  std::vector<Seconds> rehashed_;  // by node: when it was seen to send elsewhere
  std::vector<DivergentPath> fresh_;
  std::size_t elsewhere_ = 0;
  std::size_t unknown_ = 0;
  bool is_hash_known_ = true;
  bool has_changed_ = false;   // since consume_unknown_paths()
  bool has_rehashed_ = false;  // since consume_rehash()
};

}  // namespace regatta::probe
