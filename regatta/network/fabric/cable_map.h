// fabric/cable_map.h: which port is cabled to which: the list that those who build a fabric work
// by.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"

namespace regatta::fabric {

struct CableEnd {
  std::string_view device;  // "s0", "leaf3"
  std::string port;         // "nic2" of a server; "17" of a switch, downlinks first, from 1 on
};

struct CableEntry {
  CableEnd low;
  CableEnd high;
  BytesPerSecond rate;
  std::string_view kind;   // "server-leaf", "leaf-spine", "spine-super"
  std::string_view label;  // unique: the name of the link
};

// Calls `take` for each cable of the graph in the order of its links. What it gets lives until it
// returns.
void for_each_cable(const topo::Graph& graph, const std::function<void(const CableEntry&)>& take);

// The heading of the table and a line of it: device,port,device,port,rate,kind,label.
std::string cable_heading();
std::string cable_line(const CableEntry& cable);

}  // namespace regatta::fabric
