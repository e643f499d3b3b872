// fabric/routes_text.h: reads routes that somebody wrote or took from switches
// (docs/formats/routes.md).
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {

// The routes of `text`, a line each: a switch, the leaf that traffic goes to or "*" for all other
// leaves, and the links out of the switch that it takes. What no line says goes the shortest paths.
// `file` names the text in messages. Fails with kInvalidInput naming file, line and remedy.
Result<Routes> parse_routes(const topo::Graph& graph, std::string_view text,
                            const std::string& file);

}  // namespace regatta::fabric
