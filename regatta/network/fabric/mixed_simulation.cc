#include "regatta/network/fabric/mixed_simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "regatta/network/fabric/internal/packet/engine.h"
#include "regatta/network/fabric/internal/packet/network.h"
#include "regatta/network/fabric/internal/packet/parts.h"

namespace regatta::fabric {
namespace {

constexpr std::size_t kMostParts = 64;

// Adds what happened in a part of the traffic.
class Whole {
 public:
  explicit Whole(std::size_t flows) { report_.flows.resize(flows); }

  void add(const packet::Part& part, const MixedReport& of) {
    for (std::size_t i = 0; i < part.flows.size(); ++i)
      report_.flows[part.flows[i]] = of.flows[i];
    add_links(of);
    report_.end = std::max(report_.end, of.end);
    report_.bound = std::max(report_.bound, of.bound);
    report_.still = std::max(report_.still, of.still);
    const auto flows = static_cast<double>(part.flows.size());
    leapt_ += of.leapt.value * flows;
    time_ += of.end.value * flows;
    for (const auto count :
         {&MixedReport::packets, &MixedReport::crossings, &MixedReport::events, &MixedReport::marks,
          &MixedReport::notices, &MixedReport::pauses, &MixedReport::lost_on_links,
          &MixedReport::lost, &MixedReport::expired, &MixedReport::reordered})
      report_.*count += of.*count;
    for (const auto count : {&MixedReport::leaps, &MixedReport::leaps_by_max_min,
                             &MixedReport::leaps_by_recurrence, &MixedReport::cycles})
      report_.*count += of.*count;
    report_.not_arrived += of.not_arrived;
    report_.most_held_back = std::max(report_.most_held_back, of.most_held_back);
    if (report_.deadlock.empty()) report_.deadlock = of.deadlock;
    report_.storms.insert(report_.storms.end(), of.storms.begin(), of.storms.end());
  }

  MixedReport take() {
    if (time_ > 0) report_.leapt = report_.end * (leapt_ / time_);
    std::ranges::stable_sort(report_.storms, {}, &PauseStorm::since);
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
  double leapt_ = 0;  // of all flows
  double time_ = 0;
};

// Who listens is told at the end, in order.
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

Result<MixedReport> run_mixed(const PacketScene& scene, const Traffic& traffic,
                              const PacketOptions& packets, const MixedOptions& options) {
  auto network = make_network(scene, packets);
  if (!network) return network.error();
  const bool leaps = packets.spread == Spread::kHash && !packets.rate_control;
  // What is drawn, or led anew, has to do with all.
  std::vector<Part> parts;
  if (leaps && !packets.marks && packets.outages.empty())
    parts = independent_parts(*network, scene, traffic, kMostParts);
  const auto run_whole = [&] {
    Engine engine(*std::move(network), scene, traffic, packets);
    if (leaps) engine.set_leaps(packets, options);
    return engine.run();
  };
  if (parts.empty()) return run_whole();
  Whole whole(traffic.flows().size());
  PacketOptions silent = packets;
  silent.on_arrived = {};
  for (const Part& part : parts) {
    const PacketScene of{scene.graph, scene.routes, scene.seeds, part.pairs,
                         scene.pipes == nullptr ? nullptr : &part.pipes};
    auto one = make_network(of, packets);
    if (!one) return one.error();
    Engine engine(*std::move(one), of, part.traffic, silent);
    engine.set_leaps(silent, options);
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
