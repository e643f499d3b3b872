// bench/peers.h: runs the programs that time other libraries with the same work: OpenMPI, MPICH and
// Gloo from Debian's packages (bench/peers, built by scripts/peers.sh).
#pragma once

#include <array>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/bench/timing.h"

namespace regatta::bench {

inline constexpr std::array kPeers = {"openmpi", "mpich", "gloo"};

// A peer that takes longer than this for one round is ended.
inline constexpr Seconds kPeerLimit{300};

// The path of the peer's program, beside that of the caller; kUnsupported names the script that
// builds it.
Result<std::string> find_peer(const std::string& peer);

// Runs one round of a peer, with the defaults of its launcher and its own. kUnsupported when it has
// no such operation, kTimeout after kPeerLimit.
Result<Contender> run_peer(const std::string& peer, const BenchTask& task);

// Parses the output of rank 0 of a peer's program, one line a size: {"bytes": 1024, "wrong": 0,
// "batches_s": [1.2e-6, ...]}. kInvalidInput for any other output.
Result<Contender> parse_peer_output(const std::string& peer, const BenchTask& task,
                                    const std::string& text);

}  // namespace regatta::bench
