#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "regatta/network/fabric/internal/packet/packet_engine.h"
#include "regatta/network/fabric/internal/packet/packet_network.h"
#include "regatta/network/fabric/internal/packet/traffic_parts.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric {
namespace {

constexpr std::size_t kMostParts = 64;

// Adds what happened in a part of the traffic.
class Whole {
 public:
  explicit Whole(std::size_t flows) { report_.flows.resize(flows); }

  void add(const packet::TrafficPart& part, const MixedReport& of) {
    for (std::size_t i = 0; i < part.flows.size(); ++i)
      report_.flows[part.flows[i]] = of.flows[i];
    add_links(of);
    report_.end = std::max(report_.end, of.end);
    report_.is_stopped |= of.is_stopped;
    report_.bound = std::max(report_.bound, of.bound);
    report_.quiescent_at = std::max(report_.quiescent_at, of.quiescent_at);
    const auto flows = static_cast<double>(part.flows.size());
    skipped_ += of.skipped.value * flows;
    time_ += of.end.value * flows;
    for (const auto count :
         {&MixedReport::packets, &MixedReport::crossings, &MixedReport::events, &MixedReport::marks,
          &MixedReport::cnps, &MixedReport::pauses, &MixedReport::lost_on_links, &MixedReport::lost,
          &MixedReport::expired, &MixedReport::reordered})
      report_.*count += of.*count;
    for (const auto count : {&MixedReport::fast_forwards, &MixedReport::fast_forwards_by_max_min,
                             &MixedReport::fast_forwards_by_recurrence, &MixedReport::cycles})
      report_.*count += of.*count;
    report_.not_arrived += of.not_arrived;
    report_.reorder_buffer_peak = std::max(report_.reorder_buffer_peak, of.reorder_buffer_peak);
    if (report_.deadlock.empty()) report_.deadlock = of.deadlock;
    report_.storms.insert(report_.storms.end(), of.storms.begin(), of.storms.end());
  }

  MixedReport take() {
    if (time_ > 0) report_.skipped = report_.end * (skipped_ / time_);
    std::ranges::stable_sort(report_.storms, {}, &PfcStorm::since);
    return std::move(report_);
  }

 private:
  // Each link is of one part.
  void add_links(const MixedReport& of) {
    if (report_.bytes_of_link.empty()) {
      report_.bytes_of_link = of.bytes_of_link;
      report_.longest_queue = of.longest_queue;
      report_.mean_queue = of.mean_queue;
      report_.marks_of_link = of.marks_of_link;
      report_.pauses_of_link = of.pauses_of_link;
      return;
    }
    for (std::size_t link = 0; link < of.bytes_of_link.size(); ++link) {
      report_.bytes_of_link[link] += of.bytes_of_link[link];
      report_.longest_queue[link] += of.longest_queue[link];
      report_.mean_queue[link] += of.mean_queue[link];
      report_.marks_of_link[link] += of.marks_of_link[link];
      report_.pauses_of_link[link].count += of.pauses_of_link[link].count;
      report_.pauses_of_link[link].time += of.pauses_of_link[link].time;
    }
  }

  MixedReport report_;
  double skipped_ = 0;  // of all flows
  double time_ = 0;
};

// Calls on_arrived at the end, in the order of arrival.
void tell(const PacketOptions& options, const MixedReport& report) {
  if (!options.on_arrived) return;
  std::vector<std::uint32_t> arrived;
  for (std::uint32_t flow = 0; flow < report.flows.size(); ++flow)
    if (std::isfinite(report.flows[flow].arrived)) arrived.push_back(flow);
  std::ranges::stable_sort(arrived, {},
                           [&](std::uint32_t flow) { return report.flows[flow].arrived; });
  for (const std::uint32_t flow : arrived)
    options.on_arrived(flow, report.flows[flow]);
}

}  // namespace

namespace packet {

Result<MixedReport> run_mixed(const PacketSetup& setup, const FlowGraph& traffic,
                              const PacketOptions& packets, const MixedOptions& options) {
  auto network = make_packet_network(setup, packets);
  if (!network) return network.error();
  const bool can_fast_forward =
      packets.load_balancing == LoadBalancing::kHash && !packets.rate_control;
  // Random marks and new routes affect all traffic, so that it has no independent parts.
  std::vector<TrafficPart> parts;
  if (can_fast_forward && !packets.marks && packets.outages.empty())
    parts = independent_parts(*network, setup, traffic, kMostParts);
  const auto run_whole = [&] {
    PacketEngine engine(*std::move(network), setup, traffic, packets);
    if (can_fast_forward) engine.enable_fast_forward(packets, options);
    return engine.run();
  };
  if (parts.empty()) return run_whole();
  Whole whole(traffic.flows().size());
  PacketOptions silent = packets;
  silent.on_arrived = {};
  for (const TrafficPart& part : parts) {
    const PacketSetup of{setup.graph, setup.routes, setup.seeds, part.pairs,
                         setup.intra_server_links == nullptr ? nullptr : &part.intra_server_links};
    auto one = make_packet_network(of, packets);
    if (!one) return one.error();
    PacketEngine engine(*std::move(one), of, part.traffic, silent);
    engine.enable_fast_forward(silent, options);
    const auto report = engine.run();
    if (!report) return run_whole();  // its error names the flows of the whole
    whole.add(part, *report);
  }
  MixedReport report = whole.take();
  tell(packets, report);
  return report;
}

}  // namespace packet
}  // namespace regatta::fabric
