// probe/internal/router_answers.h: evaluates traceroutes: losses on the round trip to each router,
// beside the share of requests that the router answers where nothing is lost. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

class RouterAnswers {
 public:
  // All must outlive this.
  RouterAnswers(const topo::Graph& graph, const fabric::Routes& routes, const Matrix& matrix)
      : graph_(graph), routes_(routes), matrix_(matrix), answers_(graph.nodes.size()) {}

  // `trace`: of a path of the matrix that leads as planned. A path without losses shows how its
  // routers answer, and has no counts; a lossy one has a count for each router with one way back
  // that answers where nothing is lost.
  std::vector<diag::PassiveCount> evaluate(const Trace& trace, bool is_lossy);

 private:
  struct Answers {
    std::uint64_t requested = 0;
    std::uint64_t answered = 0;
  };

  std::size_t hops_back_alike(std::uint32_t path) const;

  const topo::Graph& graph_;
  const fabric::Routes& routes_;
  const Matrix& matrix_;
  std::vector<Answers> answers_;  // by node: of routers on paths that lost nothing
};

}  // namespace regatta::probe
