#include "regatta/fabric/packet/packet_simulation.h"

#include <algorithm>

#include <fmt/core.h>

#include "regatta/core/check.h"
#include "regatta/fabric/packet/flows.h"
#include "regatta/fabric/packet/lines.h"
#include "regatta/fabric/packet/network.h"
#include "regatta/fabric/packet/senders.h"

namespace regatta::fabric {
namespace packet {
namespace {

constexpr std::uint8_t kMostHops = 64;  // as the time to live that Linux gives to packets

class Engine {
 public:
  Engine(const Network& network, const PacketScene& scene, const Traffic& traffic,
         const PacketOptions& options)
      : network_(network),
        connections_(scene.pairs.connections),
        mtu_(static_cast<std::uint64_t>(options.mtu.value)),
        calendar_(network.links.size() * kLineEvents, span_of(network, options)),
        lines_(network, static_cast<std::uint64_t>(options.header.value), calendar_),
        senders_(network, traffic.flows().size(), connections_, mtu_),
        flows_(traffic) {}

  Result<PacketReport> run() {
    for (;;) {
      const Calendar::Event event = calendar_.pop(flows_.next_start());
      if (event.at == kNever) {
        if (flows_.next_start() == kNever) break;
        now_ = flows_.next_start();
        start(flows_.start());
        continue;
      }
      ++events_;
      now_ = event.at;
      const std::uint32_t link = event.number / kLineEvents;
      if (static_cast<LineEvent>(event.number % kLineEvents) == LineEvent::kArrival)
        arrive(link);
      else
        pull(link);
    }
    if (flows_.not_arrived() != 0)
      if (const auto waits_for = flows_.waits_without_end(); !waits_for.empty())
        return circle_of_waits(traffic_of(), waits_for);
    return report();
  }

 private:
  const Traffic& traffic_of() const { return flows_.traffic(); }

  // Events lie at most about so far ahead while no link has to wait.
  static Picoseconds span_of(const Network& network, const PacketOptions& options) {
    Picoseconds span = 1;
    const auto bytes = static_cast<std::uint64_t>(options.mtu.value + options.header.value);
    for (const Network::Link& link : network.links)
      span = std::max(span, link.latency + 2 * link.time_of(bytes));
    return span;
  }

  void start(std::uint32_t flow) {
    const std::uint32_t first = flows_.pair(flow) * connections_;
    const std::uint64_t bytes = flows_.bytes(flow);
    if (network_.way_of[first] == kNone) {
      flows_.sent(flow, now_);
      flows_.arrived(flow, now_);
      return;
    }
    std::uint32_t parts = 0;
    std::uint64_t packets = 0;
    for (; parts < connections_; ++parts) {
      const std::uint64_t part = senders_.part(bytes, parts);
      if (part == 0 && parts != 0) break;  // an empty message is one empty packet
      packets += std::max<std::uint64_t>((part + mtu_ - 1) / mtu_, 1);
    }
    REGATTA_CHECK(packets < kNone);
    flows_.expect(flow, parts, static_cast<std::uint32_t>(packets));
    for (std::uint32_t i = 0; i < parts; ++i) {
      senders_.add(first + i, flow, bytes);
      const std::uint32_t link = senders_.first_link(first + i);
      if (!senders_.is_busy(link)) send_next(link);
    }
  }

  // The NIC has sent a packet.
  void pull(std::uint32_t link) {
    if (std::uint32_t& ending = senders_.ending(link); ending != kNone) {
      const std::uint32_t flow = ending;
      ending = kNone;
      flows_.part_sent(flow, now_);
    }
    senders_.is_busy(link) = false;
    if (senders_.has_next(link)) send_next(link);
  }

  void send_next(std::uint32_t link) {
    const auto next =
        senders_.next(link, [this](std::uint32_t flow) { return flows_.bytes(flow); });
    if (next.is_last) senders_.ending(link) = next.packet.flow;
    senders_.is_busy(link) = true;
    lines_.transmit(link, next.packet, now_);
    calendar_.push(Lines::number(link, LineEvent::kFree), lines_.free_at(link));
  }

  void arrive(std::uint32_t link) {
    Packet packet = lines_.take(link);
    if (network_.links[link].is_to_host) {
      ++packets_;
      flows_.packet_arrived(packet.flow, now_);
      return;
    }
    if (packet.hops++ == kMostHops) {
      ++expired_;
      return;
    }
    std::uint32_t next = network_.ways[packet.next];
    if ((next & Network::kBack) != 0) {
      packet.next = next & ~Network::kBack;
      next = network_.ways[packet.next];
    }
    ++packet.next;
    packet.from = link;
    lines_.queue(next, packet, now_);
  }

  PacketReport report() const {
    PacketReport report;
    for (std::uint32_t flow = 0; flow < traffic_of().flows().size(); ++flow)
      report.flows.push_back(flows_.times(flow));
    for (std::uint32_t link = 0; link < network_.links.size(); ++link) {
      report.bytes_of_link.push_back(lines_.bytes(link));
      report.longest_queue.push_back(lines_.longest_queue(link));
    }
    report.end = {seconds(flows_.end())};
    report.packets = packets_;
    report.crossings = lines_.crossings();
    report.events = events_;
    report.expired = expired_;
    report.not_arrived = flows_.not_arrived();
    return report;
  }

  const Network& network_;
  const std::uint32_t connections_;
  const std::uint64_t mtu_;
  Calendar calendar_;
  Lines lines_;
  Senders senders_;
  Flows flows_;
  Picoseconds now_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t expired_ = 0;
};

Result<void> check(const PacketOptions& options) {
  if (options.mtu.value < 1 || options.mtu.value > 65535)
    return Error{Code::kInvalidInput,
                 fmt::format("the mtu is {} bytes; set it from 1 to 65535", options.mtu.value)};
  if (options.header.value < 0 || options.header.value > 65535)
    return Error{Code::kInvalidInput,
                 fmt::format("the header of a packet is {} bytes; set it from 0 to 65535",
                             options.header.value)};
  return {};
}

}  // namespace
}  // namespace packet

Result<PacketReport> simulate_packets(const PacketScene& scene, const Traffic& traffic,
                                      const PacketOptions& options) {
  if (const auto good = packet::check(options); !good) return good.error();
  for (const Traffic::Flow& flow : traffic.flows())
    REGATTA_CHECK(flow.path < scene.pairs.pairs.size());
  auto network = packet::make_network(scene, options);
  if (!network) return network.error();
  return packet::Engine(*network, scene, traffic, options).run();
}

}  // namespace regatta::fabric
