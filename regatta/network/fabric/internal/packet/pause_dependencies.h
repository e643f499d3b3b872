// fabric/internal/packet/pause_dependencies.h: which paused links wait for each other.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/internal/packet/link_queues.h"

namespace regatta::fabric::packet {

// Per link: the links that it waits for.
using PauseDependencies = std::vector<std::vector<std::uint32_t>>;

// A paused link waits for each paused link before which packets that came over it are queued.
PauseDependencies pause_dependencies(const LinkQueues& link_queues);

// Links that wait for each other; empty: none do.
DependencyCycle find_cycle(const PauseDependencies& dependencies);

}  // namespace regatta::fabric::packet
