// plan/internal/search/server_orders.h: the orders of servers that a plan for several types tries.
#pragma once

#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::plan {

using ServerOrder = std::vector<ServerId>;

// Servers of a type together: the order of the cluster first, then every other order of the types,
// up to 24.
std::vector<ServerOrder> type_orders(const topo::Cluster& cluster);

// Every stage with as many servers of each type as every other; nothing where `stages` does not
// divide them, or there is one type or one stage.
ServerOrder spread_order(const topo::Cluster& cluster, int stages);

}  // namespace regatta::plan
