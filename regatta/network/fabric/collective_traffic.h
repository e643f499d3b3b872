// fabric/collective_traffic.h: what the algorithms of collectives send, as flows that wait for each
// other. Ranks are numbers from 0, at least one; path(from, to) gives the number of a path between
// two of them. Bytes that do not divide are rounded down for each message. As all flows,
// those of a collective are fewer than 2^31.
#pragma once

#include <bit>
#include <cstdint>

#include "regatta/base/core/check.h"
#include "regatta/base/core/units.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// All-reduce of `bytes` on each of `ranks` by a ring, 0 -> 1 -> ... -> 0: 2 (ranks - 1) steps, in
// each a chunk of bytes / ranks to the next rank, once that of the step before has come and has
// been sent. Flow number: step * ranks + rank.
template <typename Path>
void add_ring_all_reduce(FlowGraph& traffic, std::uint32_t ranks, Bytes bytes, Path&& path) {
  const std::uint32_t steps = ranks < 2 ? 0 : 2 * (ranks - 1);
  const auto base = static_cast<std::uint32_t>(traffic.flows().size());
  traffic.reserve(base + std::size_t{steps} * ranks,
                  traffic.dependencies().size() + 2 * std::size_t{steps} * ranks);
  std::vector<std::uint32_t> paths;
  for (std::uint32_t rank = 0; rank < ranks && steps != 0; ++rank)
    paths.push_back(path(rank, (rank + 1) % ranks));
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t flow = traffic.add(paths[rank], {bytes.value / ranks});
      if (step == 0) continue;
      const std::uint32_t before = base + (step - 1) * ranks;
      traffic.depend(flow, before + rank, After::kSent);
      traffic.depend(flow, before + (rank + ranks - 1) % ranks, After::kArrived);
    }
  }
}

// All-to-all: each of `ranks` sends bytes / ranks to each other one, all at once.
template <typename Path>
void add_all_to_all(FlowGraph& traffic, std::uint32_t ranks, Bytes bytes, Path&& path) {
  traffic.reserve(traffic.flows().size() + std::size_t{ranks} * (ranks - 1),
                  traffic.dependencies().size());
  for (std::uint32_t from = 0; from < ranks; ++from)
    for (std::uint32_t to = 0; to < ranks; ++to)
      if (from != to) traffic.add(path(from, to), {bytes.value / ranks});
}

// All-reduce by halving and doubling: log2(ranks) exchanges of halves, quarters, ..., and back.
// `ranks` is a power of two. Source: Thakur, Rabenseifner, Gropp, "Optimization of collective
// communication operations in MPICH", 2005, section 4.4. Flow number: step * ranks + rank.
template <typename Path>
void add_halving_doubling(FlowGraph& traffic, std::uint32_t ranks, Bytes bytes, Path&& path) {
  REGATTA_CHECK(std::has_single_bit(ranks));
  const auto levels = static_cast<std::uint32_t>(std::countr_zero(ranks));
  const auto base = static_cast<std::uint32_t>(traffic.flows().size());
  for (std::uint32_t step = 0; step < 2 * levels; ++step) {
    const auto distance = [levels](std::uint32_t at) {
      return 1U << (at < levels ? levels - 1 - at : at - levels);
    };
    const long long part = bytes.value * distance(step) / ranks;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const std::uint32_t flow = traffic.add(path(rank, rank ^ distance(step)), {part});
      if (step == 0) continue;
      const std::uint32_t before = base + (step - 1) * ranks;
      traffic.depend(flow, before + rank, After::kSent);
      traffic.depend(flow, before + (rank ^ distance(step - 1)), After::kArrived);
    }
  }
}

}  // namespace regatta::fabric
