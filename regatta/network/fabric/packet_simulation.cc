#include "regatta/network/fabric/packet_simulation.h"

#include <fmt/core.h>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/packet/packet_engine.h"
#include "regatta/network/fabric/internal/packet/packet_network.h"

namespace regatta::fabric {
namespace {

constexpr double kLatest = packet::seconds(packet::kLatest);

Error wrong(std::string message) {
  return {Code::kInvalidInput, std::move(message)};
}

Result<void> check_queues(const PacketOptions& options) {
  if (const auto& pauses = options.pauses; pauses) {
    if (pauses->xon.value < 0 || pauses->xon > pauses->xoff)
      return wrong(fmt::format("links pause at {} bytes and go on at {}; let these be fewer",
                               pauses->xoff.value, pauses->xon.value));
    if (pauses->headroom && pauses->headroom->value < 0)
      return wrong("the headroom of a link is less than nothing; set it to 0 or more bytes");
    if (options.buffer)
      return wrong("a fabric that pauses does not drop by the buffer of a link; leave one out");
  }
  if (options.buffer && options.buffer->value < 0)
    return wrong("the buffer of a link is less than nothing; set it to 0 or more bytes");
  if (const auto& marks = options.marks; marks) {
    if (marks->from.value < 0 || marks->from > marks->to)
      return wrong(fmt::format("marks begin at {} bytes and are sure at {}; let these be more",
                               marks->from.value, marks->to.value));
    if (!(marks->most >= 0 && marks->most <= 1))
      return wrong(fmt::format("the chance of a mark is {}; set it from 0 to 1", marks->most));
  }
  return {};
}

Result<void> check_rates(const Dcqcn& control) {
  for (const Seconds time : {control.cnp_interval, control.alpha_timer, control.increase_timer})
    if (!(time.value >= 1e-9 && time.value < 1e3))
      return wrong(fmt::format("a timer of the rate control is {} s; set it from 1 ns to 1000 s",
                               time.value));
  if (!(control.g > 0 && control.g <= 1))
    return wrong(
        fmt::format("the gain of the rate control is {}; set it above 0, to 1 at most", control.g));
  if (control.byte_counter.value < 1 || control.fast_recovery < 0)
    return wrong(
        "the byte counter of the rate control is empty, or its steps of recovery are "
        "negative; set them to 1 and 0 or more");
  if (!(control.least.value > 0 && control.additive.value >= 0 && control.hyper.value >= 0))
    return wrong("a rate of the rate control is negative or the least one 0; set it above");
  return {};
}

Result<void> check_storms(const PfcStormOptions& storms) {
  for (const Seconds time : {storms.period, storms.rule.detection, storms.rule.recovery})
    if (!(time.value >= 1e-9 && time.value < 1e3))
      return wrong(fmt::format("a time of the watch on pauses is {} s; set it from 1 ns to 1000 s",
                               time.value));
  return {};
}

Result<void> check(const PacketOptions& options) {
  if (options.mtu.value < 1 || options.mtu.value > 65535)
    return wrong(fmt::format("the mtu is {} bytes; set it from 1 to 65535", options.mtu.value));
  if (const auto& coarse = options.coarse; coarse)
    if (coarse->per_message < 1 || coarse->least.value < 1 || coarse->least > options.mtu)
      return wrong(
          fmt::format("messages have {} packets of at least {} bytes; set these to 1 or "
                      "more, and the bytes up to the mtu",
                      coarse->per_message, coarse->least.value));
  if (options.header.value < 0 || options.header.value > 65535)
    return wrong(fmt::format("the header of a packet is {} bytes; set it from 0 to 65535",
                             options.header.value));
  if (!(options.retransmit_after.value > 0 && options.retransmit_after.value < 1e3))
    return wrong(fmt::format("what is lost is sent again after {} s; set it above 0, below 1000",
                             options.retransmit_after.value));
  if (!(options.flowlet_gap.value >= 0 && options.flowlet_gap.value < 1e3))
    return wrong(fmt::format("the gap of flowlets is {} s; set it from 0, below 1000",
                             options.flowlet_gap.value));
  if (options.rate_control)
    if (const auto good = check_rates(*options.rate_control); !good) return good.error();
  if (options.storms)
    if (const auto good = check_storms(*options.storms); !good) return good.error();
  return check_queues(options);
}

// A message is divided over the connections of its pair; packets are counted in 32 bits.
Result<void> check_sizes(const FlowGraph& traffic, const PacketOptions& options) {
  for (const FlowGraph::Flow& flow : traffic.flows()) {
    if (flow.bytes / static_cast<double>(options.mtu.value) < 4e9) continue;
    return wrong(
        fmt::format("a message of {:.0f} bytes in packets of {} are more than can be "
                    "counted; take a larger mtu, or the flow level",
                    flow.bytes, options.mtu.value));
  }
  double delays = 0;
  for (const FlowGraph::Flow& flow : traffic.flows())
    delays += flow.delay;
  if (delays < kLatest) return {};
  return wrong(
      fmt::format("pauses of {:.3g} s in all are more than picoseconds can count; take the "
                  "flow level",
                  delays));
}

Result<void> check_outages(const topo::Graph& graph, const std::vector<Outage>& outages) {
  Seconds last;
  for (const Outage& outage : outages) {
    if (!(outage.at >= last && outage.at.value < kLatest))
      return wrong(
          fmt::format("an outage happens at {} s; set it from 0, below 4e6, none before one "
                      "that is listed above",
                      outage.at.value));
    last = outage.at;
    for (const auto* links : {&outage.dead, &outage.back, &outage.stuck, &outage.freed})
      for (const LinkId link : *links)
        if (link.value < 0 || link.index() >= graph.links.size() ||
            (links == &outage.stuck && graph.links[link.index()].a_nic < 0))
          return wrong(
              fmt::format("link {} that fails is none of the graph's {}, or none of a NIC that "
                          "pauses; name one that is",
                          link.value, graph.links.size()));
  }
  return {};
}

}  // namespace

Result<PacketReport> simulate_packets(const PacketSetup& setup, const FlowGraph& traffic,
                                      const PacketOptions& options) {
  if (const auto good = check(options); !good) return good.error();
  if (const auto good = check_outages(setup.graph, options.outages); !good) return good.error();
  if (const auto good = check_sizes(traffic, options); !good) return good.error();
  for (const FlowGraph::Flow& flow : traffic.flows())
    REGATTA_CHECK(flow.path < setup.pairs.pairs.size());
  auto network = packet::make_packet_network(setup, options);
  if (!network) return network.error();
  auto report = packet::PacketEngine(*std::move(network), setup, traffic, options).run();
  if (!report) return report.error();
  // NOLINTNEXTLINE(cppcoreguidelines-slicing): what leaps say is empty here
  return PacketReport(*std::move(report));
}

Result<MixedReport> simulate_mixed(const PacketSetup& setup, const FlowGraph& traffic,
                                   const PacketOptions& packets, const MixedOptions& options) {
  if (const auto good = check(packets); !good) return good.error();
  if (packets.coarse)
    return wrong("the mixed level has no coarse packets; leave them out, or simulate all packets");
  if (const auto good = check_outages(setup.graph, packets.outages); !good) return good.error();
  if (const auto good = check_sizes(traffic, packets); !good) return good.error();
  if (!(options.tolerance >= 0 && options.tolerance < 1))
    return wrong(
        fmt::format("rates may be {} of themselves from steady ones; set it from 0, below 1",
                    options.tolerance));
  if (!(options.most_error >= 0 && options.most_error < 1))
    return wrong(fmt::format("leaps may be {} of themselves too long; set it from 0, below 1",
                             options.most_error));
  if (!(options.window.value >= 1e-9 && options.window.value < 1e3))
    return wrong(fmt::format("rates are measured for {} s; set it from 1 ns to 1000 s",
                             options.window.value));
  for (const FlowGraph::Flow& flow : traffic.flows())
    REGATTA_CHECK(flow.path < setup.pairs.pairs.size());
  return packet::run_mixed(setup, traffic, packets, options);
}

}  // namespace regatta::fabric
