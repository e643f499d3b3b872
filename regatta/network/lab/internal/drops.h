// lab/internal/drops.h: loses a share of the packets that arrive at an interface.
// Source: nft(8), "netdev" family and numgen expressions.
#pragma once

#include <string>

#include "regatta/base/core/result.h"

namespace regatta::lab {

// Drops each arriving packet with probability `share` (0 < share <= 1, in steps of a millionth) in
// the network namespace of the calling thread; replaces an earlier share. Packets are counted
// before segmentation, so a large send is lost as a whole. kUnsupported without nftables.
Status start_drops(const std::string& interface, double share);

// Success when there are none.
Status stop_drops(const std::string& interface);

}  // namespace regatta::lab
