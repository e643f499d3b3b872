// collective/setting.h: how a collective is carried out: the choices for a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace regatta::collective {

enum class Algorithm : std::uint8_t {
  kAutomatic,
  kExchange,      // every rank sends everything to every other
  kDoubling,      // recursive doubling
  kHalving,       // recursive halving, then doubling
  kDoubleTree,    // two binary trees, pipelined
  kRing,          // a chain for rooted collectives
  kHierarchical,  // inside the servers, between them, inside again
  kDirect,        // every part straight to its rank
  kTree,          // one binomial tree
  kPairwise,      // one partner after the other
  kBruck,         // log2 p steps of gathered parts
  kRailLocal,     // over the rank of the server that owns the rail
  kOneShot,       // inside a server, by slots
  kStaged,        // inside a server, through stages
  kInPlace,       // inside a server, between buffers that all ranks map
};

std::string to_string(Algorithm algorithm);
std::optional<Algorithm> algorithm_named(const std::string& name);

// A piece that the staged algorithm moves through shared memory at once, at most.
inline constexpr std::size_t kStageBytes = std::size_t{2} << 20;

struct Setting {
  Algorithm algorithm = Algorithm::kAutomatic;
  std::size_t chunk_bytes = 0;  // of one step, at most; 0: the default of the algorithm
  int connections = 0;          // over which messages to a rank are striped; 0: all

  friend bool operator==(const Setting&, const Setting&) = default;
};

// The settings that trials measure. Algorithms add in different orders, so their results differ in
// the last bits; connections and chunks do not change a result.
enum class Measure : std::uint8_t {
  kNothing,    // the cost model alone chooses: the same in every run
  kTransport,  // connections and chunks; the algorithms are the same in every run
  kAll,
};

// "ring, chunks of 512 KiB, 2 connections"
std::string describe(const Setting& setting);

}  // namespace regatta::collective
