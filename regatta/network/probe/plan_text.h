// probe/plan_text.h: the part that one server has in a plan of probes, as text: for probers that
// have no cluster file, because whoever starts them knows the network already.
//
//   regatta-probe-plan 1 NODE PLAN SERVER
//   s PROBE FROM FROM_PORT TO TO_PORT     sends it
//   a PROBE FROM FROM_PORT TO TO_PORT     answers it
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/probe/internal/report_text.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

struct ServerPlan {
  std::string server;
  std::uint64_t number = 0;  // plan_number() of the whole
  ServerPart part;
  Matrix matrix;  // the flows of what the server sends and answers; nothing else is known
};

std::string plan_text(const topo::Graph& graph, const Matrix& matrix, const ServerPart& part,
                      std::uint64_t number);

// kInvalidInput names the line.
Result<ServerPlan> parse_plan(std::string_view text);

}  // namespace regatta::probe
