// Traces of failures as events of a cluster's nodes: cluster_replay/node_events.h.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/cluster_replay/node_events.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/reliability/failure_log.h"

namespace regatta::cluster_replay {
namespace {

using reliability::kDay;

constexpr int kServers = 400;             // of InfiniteHBD's trace; most have no row
constexpr std::uint64_t kServerSeed = 1;  // the trace numbers servers by their first fault

// Outages of one unit of a trace; times are of the trace, from its begin on.
struct Outage {
  double begin = 0;
  double end = 0;  // infinity: not seen
};
using UnitOutages = std::vector<Outage>;

struct OutageTrace {
  std::vector<UnitOutages> units;  // in the order in which they become nodes
  double span = 0;                 // seconds
  bool is_device = false;          // a unit stands for a device, else for a node
  const char* name = "";
};

// Numbers of a location such as c13-5c2s2n1, in the order of its cabinets.
std::array<int, 8> location_key(std::string_view location) {
  std::array<int, 8> key{};
  std::size_t count = 0;
  for (const char* at = location.data(); at < location.data() + location.size();) {
    int number = 0;
    const auto [end, error] = std::from_chars(at, location.data() + location.size(), number);
    if (error != std::errc() || *at == '-') {
      ++at;
      continue;
    }
    if (count < key.size()) key[count++] = number;
    at = end;
  }
  return key;
}

// A place of Titan is a unit, as GPUs come and go there.
Result<OutageTrace> read_places(std::string_view text, const std::string& file, Seconds repair) {
  REGATTA_TRY(log, reliability::read_gpu_lives(text, file));
  std::map<std::pair<std::array<int, 8>, std::string>, UnitOutages> places;
  const auto place_of = [&](const std::string& location) -> UnitOutages& {
    return places[{location_key(location), location}];
  };
  for (const reliability::LoggedUnit& unit : log.units) {
    for (const reliability::LoggedStay& stay : unit.stays)
      place_of(stay.location);
    for (const reliability::LoggedFailure& failure : unit.failures) {
      const double begin = (failure.start - log.begin).value;
      place_of(failure.location).push_back({begin, begin + repair.value});
    }
  }
  OutageTrace trace{.units = {},
                    .span = (log.end - log.begin).value,
                    .is_device = true,
                    .name = "places of GPUs"};
  for (auto& [key, outages] : places)
    trace.units.push_back(std::move(outages));
  return trace;
}

Result<OutageTrace> read_servers(std::string_view text, const std::string& file) {
  REGATTA_TRY(log, reliability::read_server_faults(text, file, kServers));
  OutageTrace trace{.units = {}, .span = log.end.value, .is_device = false, .name = "servers"};
  for (const reliability::LoggedUnit& unit : log.units) {
    UnitOutages& outages = trace.units.emplace_back();
    for (const reliability::LoggedFailure& failure : unit.failures)
      outages.push_back({failure.start.value, failure.end.value});
  }
  packing::RandomSequence random(kServerSeed);
  for (std::size_t i = trace.units.size(); i > 1; --i)
    std::swap(trace.units[i - 1], trace.units[random.below(i)]);
  return trace;
}

// Outages of the unit that stands at `slot`. Beyond the units of the trace they come again, later
// by an equal part of the trace for each time, the end of the trace followed by its begin.
UnitOutages outages_at(const OutageTrace& trace, std::size_t slot, std::size_t slots) {
  const std::size_t units = trace.units.size();
  const std::size_t copies = (slots + units - 1) / units;
  const double shift = trace.span * static_cast<double>(slot / units) / static_cast<double>(copies);
  UnitOutages outages = trace.units[slot % units];
  if (shift <= 0) return outages;
  for (Outage& outage : outages) {
    const double length = outage.end - outage.begin;
    outage.begin = std::fmod(outage.begin + shift, trace.span);
    outage.end = outage.begin + length;
  }
  return outages;
}

// Events of a node in the time of the cut; outages that meet are one.
int add_events(int node, UnitOutages outages, const FailureTraceCut& cut,
               std::vector<NodeEvent>& events) {
  std::sort(outages.begin(), outages.end(),
            [](const Outage& a, const Outage& b) { return a.begin < b.begin; });
  const double from = cut.from.value;
  const double until = from + cut.duration.value;
  double end = -1;
  int failures = 0;
  for (std::size_t i = 0; i < outages.size(); i += 1) {
    const double begin = std::max(outages[i].begin, from);
    end = outages[i].end;
    while (i + 1 < outages.size() && outages[i + 1].begin <= end)
      end = std::max(end, outages[++i].end);
    if (end <= from || begin >= until) continue;
    ++failures;
    events.push_back({{begin - from}, node, sched::NodeHealth::kFailed});
    if (end < until) events.push_back({{end - from}, node, sched::NodeHealth::kReady});
  }
  return failures;
}

Result<OutageTrace> read_trace(std::string_view text, const std::string& file, Seconds repair) {
  const std::string_view head = text.substr(0, text.find('\n'));
  const std::vector<std::string> columns = split(trim(head), ',');
  const auto has = [&](std::string_view name) {
    return std::find(columns.begin(), columns.end(), name) != columns.end();
  };
  if (has("SN")) return read_places(text, file, repair);
  if (has("start_d")) return read_servers(text, file);
  return Error{Code::kInvalidInput,
               file +
                   ":1: no trace of failures has these columns; give the lives of Titan's GPUs "
                   "(SN) or the faults of InfiniteHBD's servers (start_d)"};
}

}  // namespace

Result<TracedFailures> read_node_failures(std::string_view text, const std::string& file,
                                          const std::vector<sched::ClusterNode>& nodes,
                                          const FailureTraceCut& cut) {
  REGATTA_TRY(trace, read_trace(text, file, cut.repair));
  if (trace.units.empty() || trace.span <= 0)
    return Error{Code::kInvalidInput,
                 file +
                     ": it has no failure at a time above that of its first row; give a trace "
                     "with some"};
  if (cut.from.value >= trace.span)
    return Error{Code::kInvalidInput,
                 fmt::format("{}: the trace is {} long and is to be replayed from {} on; give an "
                             "earlier time",
                             file, format_duration({trace.span}), format_duration(cut.from))};
  TracedFailures traced;
  traced.needs_repair = trace.is_device;  // lives of GPUs
  traced.trace =
      fmt::format("{} {} for {}", trace.units.size(), trace.name, format_duration({trace.span}));
  std::size_t slots = 0;
  for (const sched::ClusterNode& node : nodes)
    slots += trace.is_device ? as_index(node.devices) : 1;
  std::size_t slot = 0;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    UnitOutages outages;
    const int units = trace.is_device ? at(nodes, i).devices : 1;
    for (int k = 0; k < units; ++k) {
      const UnitOutages more = outages_at(trace, slot++, slots);
      outages.insert(outages.end(), more.begin(), more.end());
    }
    const int failures = add_events(i, std::move(outages), cut, traced.events);
    traced.failures += failures;
    traced.failed_nodes += failures > 0 ? 1 : 0;
    if (std::ssize(traced.events) > kNodeEventsMax)
      return Error{Code::kInvalidInput,
                   fmt::format("{}: more than {} failures and returns of nodes; give a shorter "
                               "time or fewer nodes",
                               file, kNodeEventsMax)};
  }
  std::stable_sort(traced.events.begin(), traced.events.end(),
                   [](const NodeEvent& a, const NodeEvent& b) { return a.at < b.at; });
  return traced;
}

}  // namespace regatta::cluster_replay
