// fabric/internal/failure_sets.h: enumerates the sets of links and switches that may fail together,
// or draws some of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"

namespace regatta::fabric {

class FailureSetEnumerator {
 public:
  FailureSetEnumerator(const topo::Graph& graph, const FailureOptions& options);

  double sets() const { return sets_; }          // possible ones; 0: fewer parts than fail at once
  bool is_sample() const { return is_sample_; }  // they are drawn
  std::size_t count() const { return count_; }   // that next() gives
  // False at the end.
  bool next();
  const FailureSet& failed() const { return failed_; }

 private:
  bool advance();
  void draw();

  // Links between switches, then switches, by their place.
  std::vector<LinkId> links_;
  std::vector<NodeId> switches_;
  std::vector<std::size_t> places_;
  std::mt19937_64 random_;
  double sets_ = 0;
  bool is_sample_ = false;
  std::size_t count_ = 0;
  std::size_t given_ = 0;
  FailureSet failed_;
};

}  // namespace regatta::fabric
