// bench/packing/packing_bound.h: a share of the GPUs that no placement of given pods can exceed.
#pragma once

#include <vector>

#include "regatta/platform/packing/gpu_node.h"

namespace regatta::packing {

// Upper bound of the allocated share of the GPUs of `nodes`, which are all free, when any of `pods`
// may be left out. It comes from the linear programme that fills each GPU with sets of requests of
// at most a whole GPU, by model. CPU, memory and the nodes that hold GPUs together do not count.
// Every iterate of the dual is a bound; the least is given.
double packing_bound(const std::vector<GpuNode>& nodes, const std::vector<Pod>& pods);

}  // namespace regatta::packing
