// lab/internal/routing.h: what the routing protocol of a real fabric would leave of a blueprint's
// routes when cables lose their carrier. Decides only; internal/network.h installs it.
#pragma once

#include <vector>

#include "regatta/network/lab/internal/blueprint.h"

namespace regatta::lab {

// For each route of the blueprint, in its order, the hops that still lead to the destination: the
// cable is up, and the neighbour behind it has a hop left too, up to the server. Only shortest
// paths count, as with equal-cost BGP in a CLOS (RFC 7938, section 4.3: a leaf is no transit); no
// hop left means that the route is withdrawn. Servers run no protocol and keep their hops.
// `down`: per cable.
std::vector<std::vector<Hop>> hops_left(const Blueprint& blueprint, const std::vector<bool>& down);

}  // namespace regatta::lab
