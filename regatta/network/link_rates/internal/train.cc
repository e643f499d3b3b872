#include "regatta/network/link_rates/internal/train.h"

#include <algorithm>

namespace regatta::link_rates {
namespace {

constexpr std::uint64_t kMagic = 0x5247545452414931;  // "RGTTRAI1"
constexpr Seconds kLength{0.005};
constexpr int kPacketBytes = 1472;  // with its headers an Ethernet packet of 1500 bytes
constexpr int kPacketsLeast = 32;
constexpr int kPacketsUsual = 1024;
constexpr std::size_t kArrivalsLeast = 4;
constexpr long long kAnswerBytes = 576 + 14;

template <typename Word>
void put_big(std::byte* at, Word word) {
  for (std::size_t i = 0; i < sizeof word; ++i)
    at[i] = static_cast<std::byte>(word >> 8 * (sizeof word - 1 - i) & 0xffU);
}

template <typename Word>
Word get_big(const std::byte* at) {
  Word word = 0;
  for (std::size_t i = 0; i < sizeof word; ++i)
    word = static_cast<Word>(word << 8U | std::to_integer<Word>(at[i]));
  return word;
}

struct Point {
  double bytes = 0;  // on the link up to this packet
  double time = 0;
};

}  // namespace

Bytes frame_bytes(const TrainShape& shape) {
  long long bytes = 0;
  for (int i = 0; i < shape.packets; ++i)
    bytes += bytes_of(shape, i) + kFrameOverheadBytes;
  return {bytes};
}

Bytes answer_bytes(const TrainShape& shape) {
  long long ending = 0;
  for (int i = 0; i < shape.packets && shape.time_to_live > 0; ++i)
    ending += is_marker(shape, i) ? 0 : 1;
  return {ending * kAnswerBytes};
}

TrainShape shape_for(BytesPerSecond rate, int time_to_live) {
  const double packets = kLength.value * rate.value / (kPacketBytes + kFrameOverheadBytes);
  const int count = static_cast<int>(std::clamp<double>(packets, kPacketsLeast, kPacketsUsual));
  // The markers carry next to nothing.
  const int all = time_to_live > 0 ? count * kMarkerPeriod / (kMarkerPeriod - 1) : count;
  return {.packets = std::min(all, kTrainPacketsMost),
          .packet_bytes = kPacketBytes,
          .time_to_live = time_to_live};
}

std::array<std::byte, kTrainHeaderBytes> encode(const TrainHeader& header) {
  std::array<std::byte, kTrainHeaderBytes> bytes{};
  put_big(bytes.data(), kMagic);
  put_big(bytes.data() + 8, header.train);
  put_big(bytes.data() + 16, header.index);
  return bytes;
}

std::optional<TrainHeader> decode_train_header(std::span<const std::byte> packet) {
  if (packet.size() < kTrainHeaderBytes || get_big<std::uint64_t>(packet.data()) != kMagic)
    return std::nullopt;
  return TrainHeader{.train = get_big<std::uint64_t>(packet.data() + 8),
                     .index = get_big<std::uint32_t>(packet.data() + 16)};
}

std::optional<BytesPerSecond> arrival_rate(const TrainShape& shape,
                                           std::vector<TrainArrival> arrivals) {
  std::ranges::sort(arrivals, {}, &TrainArrival::index);
  // Load packets in between were on the link, although they did not arrive.
  std::vector<Point> points;
  double bytes = 0;
  std::size_t next = 0;
  for (int i = 0; i < shape.packets; ++i) {
    const bool has_arrived = next < arrivals.size() && arrivals[next].index == i;
    const bool ends_early = shape.time_to_live > 0 && !is_marker(shape, i);
    // A lost packet was perhaps never on the link.
    if (has_arrived || ends_early) bytes += bytes_of(shape, i) + kFrameOverheadBytes;
    if (!has_arrived) continue;
    if (2 * i >= shape.packets)
      points.push_back(
          {bytes, static_cast<double>(arrivals[next].at_ns - arrivals[0].at_ns) * 1e-9});
    while (next < arrivals.size() && arrivals[next].index == i)
      ++next;
  }
  if (points.size() < kArrivalsLeast) return std::nullopt;
  Point mean;
  for (const Point& point : points) {
    mean.bytes += point.bytes / static_cast<double>(points.size());
    mean.time += point.time / static_cast<double>(points.size());
  }
  double together = 0;
  double alone = 0;
  for (const Point& point : points) {
    together += (point.bytes - mean.bytes) * (point.time - mean.time);
    alone += (point.bytes - mean.bytes) * (point.bytes - mean.bytes);
  }
  if (together <= 0) return std::nullopt;  // out of order, or all at once
  return BytesPerSecond{alone / together};
}

}  // namespace regatta::link_rates
