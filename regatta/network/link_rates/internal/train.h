// link_rates/internal/train.h: a packet train: its packets, and the rate that their arrival times
// show. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::link_rates {

inline constexpr int kTrainPacketsMost = 2048;
inline constexpr int kTrainPacketBytesMost = 8900;  // of UDP payload
inline constexpr int kMarkerBytes = 64;             // the same, of a marker
inline constexpr int kMarkerPeriod = 4;             // every fourth packet, and the last one
// IPv4, UDP and Ethernet, without preamble and gap.
inline constexpr int kFrameOverheadBytes = 20 + 8 + 14;

// The packets of a train. Where `time_to_live` is not 0, the packets between the markers end at
// that router, and the markers are short.
struct TrainShape {
  int packets = 0;
  int packet_bytes = 0;  // of UDP payload
  int time_to_live = 0;  // 0: all packets reach the receiver

  bool operator==(const TrainShape&) const = default;
};

inline bool is_marker(const TrainShape& shape, int index) {
  return shape.time_to_live > 0 &&
         (index % kMarkerPeriod == kMarkerPeriod - 1 || index == shape.packets - 1);
}
// The length of its UDP payload.
inline int bytes_of(const TrainShape& shape, int index) {
  return is_marker(shape, index) ? kMarkerBytes : shape.packet_bytes;
}
// All frames on the loaded links.
Bytes frame_bytes(const TrainShape& shape);
// The answers that a router may send for the packets that end there, as Linux does: 576 bytes
// for each (RFC 1812 4.3.2.3). Most routers send fewer.
Bytes answer_bytes(const TrainShape& shape);

// 5 ms of a link of this rate, in packets of 1472 bytes; at least 32 of them.
TrainShape shape_for(BytesPerSecond rate, int time_to_live);

// A train has this in front of each of its packets, in network byte order.
struct TrainHeader {
  std::uint64_t train = 0;
  std::uint32_t index = 0;
};
inline constexpr std::size_t kTrainHeaderBytes = 20;
std::array<std::byte, kTrainHeaderBytes> encode(const TrainHeader& header);
// Nothing for other packets.
std::optional<TrainHeader> decode_train_header(std::span<const std::byte> packet);

struct TrainArrival {
  int index = 0;
  std::int64_t at_ns = 0;
};

// The rate at which the second half of the train arrived, in bytes of frames: the first half is
// what the token buckets and buffers before the narrowest link let through faster. By least squares
// over the arrivals, so that a single late one counts little. Without packets that only the
// receiver misses it is lower than the link's rate only while other traffic shares the link.
// Nothing where fewer than four packets of that half arrived.
std::optional<BytesPerSecond> arrival_rate(const TrainShape& shape,
                                           std::vector<TrainArrival> arrivals);

}  // namespace regatta::link_rates
