// report/fabric_svg.h: a cluster as a picture: one SVG file that asks for nothing from outside, for
// light and dark pages.
#pragma once

#include <string>

#include "regatta/model/topo/cluster.h"

namespace regatta::report {

// Tiers in rows, cables wider the faster they are, servers with
// their devices and NICs below their leaves. Every server and every switch of a cluster of up to
// kServersDrawn servers is drawn unless the picture grows too wide to read; else blocks of servers
// are counted, and of equal blocks, groups and switches the first and the last are drawn, the
// number of the others between them. Requires a validated cluster.
std::string fabric_svg(const topo::Cluster& cluster);

}  // namespace regatta::report
