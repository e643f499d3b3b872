// The outcome of a simulated scenario.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/fabric_report.h"
#include "regatta/app/report/internal/old_names.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/network/diag/polarisation.h"
#include "regatta/network/simulate/storm_cause.h"

namespace regatta::report {
namespace {

using nlohmann::json;
using simulate::Scenario;
using simulate::SimulatedNetwork;
using simulate::SimulationResult;

constexpr std::size_t kBusiestLinks = 10;
constexpr std::size_t kSlowestShown = 5;

json finite_json(double time) {
  return std::isfinite(time) ? json(time) : json();
}

json scenario_item_json(const simulate::OperationStats& item) {
  json one = {{"name", item.name},
              {"start_s", finite_json(item.start)},
              {"end_s", finite_json(item.end)},
              {"time_s", finite_json(item.time())},
              {"messages", item.messages},
              {"network_bytes", item.network_bytes},
              {"bound_s", item.bound},
              {"efficiency", item.time() > 0 ? item.bound / item.time() : 0}};
  if (item.algbw > 0) {
    one["algbw_Bps"] = item.algbw;
    one["busbw_Bps"] = item.busbw;
  }
  return one;
}

std::vector<simulate::LinkStats> busiest_links(const SimulationResult& outcome) {
  std::vector<simulate::LinkStats> links = outcome.links;
  std::erase_if(links, [](const auto& link) { return link.bytes <= 0; });
  const std::size_t count = std::min(kBusiestLinks, links.size());
  std::ranges::partial_sort(links, links.begin() + static_cast<std::ptrdiff_t>(count),
                            [](const auto& a, const auto& b) {
                              return a.mean != b.mean ? a.mean > b.mean : a.link < b.link;
                            });
  links.resize(count);
  return links;
}

std::string rank_name(const SimulatedNetwork& network, std::uint32_t rank) {
  return to_string(network.cluster, network.devices[rank]);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text)
    quoted += letter == '"' ? std::string("\"\"") : std::string(1, letter);
  return quoted + "\"";
}

json links_json(const SimulatedNetwork& network, const std::vector<std::uint32_t>& links) {
  json names = json::array();
  for (const std::uint32_t link : links)
    names.push_back(network.link_name(link));
  return names;
}

json storms_json(const SimulatedNetwork& network, const simulate::PacketStats& packets) {
  json storms = json::array();
  for (const fabric::PfcStorm& storm : packets.storms) {
    storms.push_back({{"since_s", storm.since.value},
                      {"detected_s", storm.at.value},
                      {"end_s", storm.over ? json(storm.over->value) : json()},
                      {"is_ongoing", storm.is_held},
                      {"root", simulate::storm_root_name(network, storm.tree)},
                      {"cycle", links_json(network, storm.tree.cycle)},
                      {"links", links_json(network, storm.tree.links)}});
    add_old_names(storms.back(), {{"detected_s", "at_s"},
                                  {"end_s", "over_s"},
                                  {"is_ongoing", "is_held"},
                                  {"cycle", "circle"}});
  }
  return storms;
}

json packets_json(const SimulatedNetwork& network, const SimulationResult& outcome) {
  const simulate::PacketStats& packets = *outcome.packets;
  json all = {{"packets", packets.packets},
              {"events", packets.events},
              {"marks", packets.marks},
              {"pauses", packets.pauses},
              {"lost", packets.lost},
              {"reordered", packets.reordered},
              {"reorder_buffer_peak", packets.reorder_buffer_peak},
              {"longest_queue_bytes", packets.longest_queue},
              {"longest_queue_link", network.link_name(packets.longest_queue_link)},
              {"deadlock", links_json(network, packets.deadlock)},
              {"storms", storms_json(network, packets)},
              {"error_bound_s", packets.bound},
              {"skipped_s", packets.skipped}};
  add_old_names(all, {{"reorder_buffer_peak", "most_held_back"},
                      {"error_bound_s", "bound_s"},
                      {"skipped_s", "leapt_s"}});
  return all;
}

}  // namespace

json simulation_json(const Scenario& scenario, const SimulatedNetwork& network,
                     const SimulationResult& outcome) {
  json all = {
      {"scenario", scenario.name},    {"cluster", network.cluster.name},  {"end_s", outcome.end},
      {"messages", outcome.messages}, {"unfinished", outcome.unfinished}, {"items", json::array()},
      {"links", json::array()},       {"slowest", json::array()}};
  if (outcome.stopped_at) all["stopped_at_s"] = *outcome.stopped_at;
  for (const simulate::OperationStats& item : outcome.operations)
    all["items"].push_back(scenario_item_json(item));
  for (const simulate::LinkStats& link : busiest_links(outcome)) {
    all["links"].push_back({{"name", network.link_name(link.link)},
                            {"bytes", link.bytes},
                            {"mean", link.mean},
                            {"peak", link.peak}});
    if (outcome.packets) all["links"].back()["longest_queue_bytes"] = link.queue;
  }
  for (const simulate::SlowMessage& one : outcome.slowest) {
    all["slowest"].push_back({{"item", outcome.operations[one.operation].name},
                              {"from", rank_name(network, one.from)},
                              {"to", rank_name(network, one.to)},
                              {"bytes", one.bytes},
                              {"start_s", one.start},
                              {"arrived_s", finite_json(one.arrived)},
                              {"ideal_s", one.alone}});
    add_old_names(all["slowest"].back(), {{"ideal_s", "alone_s"}});
  }
  if (outcome.packets) all["packet"] = packets_json(network, outcome);
  all["polarisation"] = json::array();
  for (const diag::Polarisation& one : outcome.polarisation) {
    json empty = json::array();
    for (const std::uint32_t link : one.empty)
      empty.push_back(network.link_name(link));
    all["polarisation"].push_back({{"text", diag::to_string(network.graph, one)},
                                   {"empty_links", std::move(empty)},
                                   {"by_chance", one.by_chance}});
  }
  if (outcome.ports.most > 0) {
    all["max_link_connections_by_chance"] = outcome.ports.most_by_chance;
    all["max_link_connections"] = outcome.ports.most;
    add_old_names(all, {{"max_link_connections_by_chance", "most_flows_by_chance"},
                        {"max_link_connections", "most_flows_planned"}});
  }
  return all;
}

namespace {

bool is_deadlocked(const SimulationResult& outcome) {
  return outcome.packets && !outcome.packets->deadlock.empty();
}

bool has_ongoing_storm(const SimulationResult& outcome) {
  return outcome.packets &&
         std::ranges::any_of(outcome.packets->storms,
                             [](const fabric::PfcStorm& storm) { return storm.is_held; });
}

bool has_lasting_failure(const Scenario& scenario) {
  return std::ranges::any_of(scenario.failures, [](const simulate::Failure& failure) {
    return failure.pausing_nic.empty() && !std::isfinite(failure.until.value);
  });
}

// Why flows never finish.
std::string unfinished_reason(const Scenario& scenario, const SimulationResult& outcome) {
  std::vector<std::string> reasons;
  if (is_deadlocked(outcome))
    reasons.emplace_back("links wait for each other");
  else if (has_ongoing_storm(outcome))
    reasons.emplace_back("pauses block them");
  if (reasons.empty() || has_lasting_failure(scenario))
    reasons.emplace_back("a failure left no path");
  return join(reasons, ", or ");
}

// "96 messages between 8 devices, finished after 859 ms".
std::string messages_text(const SimulatedNetwork& network, const SimulationResult& outcome) {
  const std::string all = fmt::format("{} between {}", pluralized(outcome.messages, "message"),
                                      pluralized(network.devices.size(), "device"));
  if (outcome.stopped_at)
    return fmt::format("{}, stopped after {} of simulated time with {} unfinished", all,
                       format_seconds({*outcome.stopped_at}),
                       pluralized(outcome.unfinished, "flow"));
  if (outcome.unfinished == 0)
    return fmt::format("{}, finished after {}", all, format_seconds({outcome.end}));
  const std::string never =
      fmt::format("{}, but {} {}", all, pluralized(outcome.unfinished, "flow"),
                  outcome.unfinished == 1 ? "never finishes" : "never finish");
  return outcome.end > 0 ? fmt::format("{}; the last other one finished after {}", never,
                                       format_seconds({outcome.end}))
                         : never;
}

// The time of an item or message without an end.
const char* no_end_text(const SimulationResult& outcome) {
  return outcome.stopped_at ? "unfinished" : "never";
}

std::string items_table(const SimulationResult& outcome) {
  std::vector<std::vector<std::string>> rows = {
      {"item", "start", "time", "NIC bound", "busbw", "messages"}};
  for (const simulate::OperationStats& item : outcome.operations) {
    const bool ends = std::isfinite(item.end);
    rows.push_back({printable(item.name, 40),
                    std::isfinite(item.start) ? format_seconds({item.start}) : "-",
                    ends ? format_seconds({item.time()}) : no_end_text(outcome),
                    ends && item.time() > 0 ? format_percent(item.bound / item.time()) : "-",
                    item.busbw > 0 ? format_bytes_per_second({item.busbw}) : "-",
                    std::to_string(item.messages)});
  }
  return format_table(rows) + "\n";
}

std::string busiest_links_table(const SimulatedNetwork& network, const SimulationResult& outcome) {
  std::vector<std::vector<std::string>> rows = {{"busiest links", "mean use", "peak", "carried"}};
  for (const simulate::LinkStats& link : busiest_links(outcome)) {
    rows.push_back({network.link_name(link.link), format_percent(link.mean),
                    outcome.history.used() > 0 ? format_percent(std::min(1.0, link.peak)) : "-",
                    format_bytes(link.bytes)});
  }
  return rows.size() > 1 ? format_table(rows) + "\n" : "";
}

std::string slowest_messages_table(const SimulatedNetwork& network,
                                   const SimulationResult& outcome) {
  std::vector<std::vector<std::string>> rows = {
      {"slowest messages", "item", "size", "time", "slowdown"}};
  for (const simulate::SlowMessage& one : outcome.slowest) {
    if (rows.size() > kSlowestShown) break;
    const bool ends = std::isfinite(one.arrived);
    rows.push_back({rank_name(network, one.from) + " to " + rank_name(network, one.to),
                    printable(outcome.operations[one.operation].name, 30), format_bytes(one.bytes),
                    ends ? format_seconds({one.arrived - one.start}) : no_end_text(outcome),
                    ends ? fmt::format("{:.2f}", (one.arrived - one.start) / one.alone) : "-"});
  }
  return rows.size() > 1 ? format_table(rows) : "";
}

std::string end_text(const fabric::PfcStorm& storm) {
  if (storm.over) return "over at " + format_seconds(*storm.over);
  if (storm.is_held) return "not over at the end";
  return fmt::format("not blocked at the end, but for less than the {} after which a storm is over",
                     format_seconds(fabric::PfcWatchdogOptions{}.recovery));
}

std::string storm_text(const SimulatedNetwork& network, const fabric::PfcStorm& storm) {
  constexpr std::size_t kShown = 16;
  std::string text =
      fmt::format("pause storm: {}, since {}, detected at {}, {}; it {} {}:\n",
                  simulate::storm_cause_text(network, storm.tree), format_seconds(storm.since),
                  format_seconds(storm.at), end_text(storm), storm.is_held ? "blocks" : "blocked",
                  pluralized(storm.tree.links.size(), "link"));
  for (std::size_t i = 0; i < std::min(kShown, storm.tree.links.size()); ++i)
    text += "  " + network.link_name(storm.tree.links[i]) + "\n";
  if (storm.tree.links.size() > kShown)
    text += fmt::format("  and {} more\n", storm.tree.links.size() - kShown);
  return text;
}

std::string packets_text(const SimulatedNetwork& network, const SimulationResult& outcome) {
  const simulate::PacketStats& packets = *outcome.packets;
  std::string text = fmt::format(
      "{} packets; {} marked, {} pauses, {} lost, {} out of order (at most {} buffered for "
      "reordering)\n"
      "longest queue: {} at {}\n",
      packets.packets, packets.marks, packets.pauses, packets.lost, packets.reordered,
      packets.reorder_buffer_peak, format_bytes(packets.longest_queue),
      network.link_name(packets.longest_queue_link));
  if (outcome.level == simulate::Level::kMixed) {
    text += fmt::format("every time is within {} of that of the packet level; {}{} skipped\n",
                        format_seconds({packets.bound}), format_seconds({packets.skipped}),
                        outcome.unfinished == 0 ? " of " + format_seconds({outcome.end}) : "");
  }
  for (const fabric::PfcStorm& storm : packets.storms)
    text += storm_text(network, storm);
  if (packets.deadlock.empty()) return text;
  text += "deadlock: these links wait for each other\n";
  for (const std::uint32_t link : packets.deadlock)
    text += "  " + network.link_name(link) + "\n";
  return text;
}

}  // namespace

std::string simulation_text(const Scenario& scenario, const SimulatedNetwork& network,
                            const SimulationResult& outcome, Seconds wall_time) {
  std::string text =
      fmt::format("{} on {}: {}; simulated in {}\n", printable(scenario.name, 60),
                  network.cluster.name, messages_text(network, outcome), format_seconds(wall_time));
  if (outcome.unfinished > 0 && !outcome.stopped_at)
    text += fmt::format("{} never {}: {}\n", pluralized(outcome.unfinished, "flow"),
                        outcome.unfinished == 1 ? "finishes" : "finish",
                        unfinished_reason(scenario, outcome));
  text += "\n";
  if (outcome.ports.most > 0)
    text += fmt::format(
        "planned ports: at most {} connections on a link between switches; {} by chance\n\n",
        outcome.ports.most, outcome.ports.most_by_chance);
  text += items_table(outcome);
  if (outcome.packets) text += packets_text(network, outcome) + "\n";
  for (const diag::Polarisation& one : outcome.polarisation)
    text += fmt::format("{} (by chance: {:.1g})\n\n", diag::to_string(network.graph, one),
                        one.by_chance);
  if (scenario.routing.shares_seed && !scenario.failures.empty())
    text += "polarisation is not reported: failed links are empty as well\n\n";
  text += busiest_links_table(network, outcome) + slowest_messages_table(network, outcome);
  if (!outcome.slowest.empty()) text += "slowdown: against an idle network\n";
  return text;
}

std::string message_csv_heading() {
  return "item,from,to,bytes,start_s,arrived_s\n";
}

std::string message_csv_line(const Scenario& scenario, const SimulatedNetwork& network,
                             const simulate::MessageRecord& message) {
  return fmt::format("{},{},{},{:.0f},{:.9g},{:.9g}\n",
                     csv_field(scenario.traffic[message.operation].name),
                     rank_name(network, message.from), rank_name(network, message.to),
                     message.bytes, message.start, message.arrived);
}

std::string job_step_text(const JobStepItem& item) {
  return fmt::format(
      "item {}: {} of job {}: forward {}, backward {}, {} to the next stage, {} of gradients\n",
      item.name, item.strategy, item.job, format_seconds(item.step.forward),
      format_seconds(item.step.backward), format_bytes(item.step.activations),
      format_bytes(item.step.gradients));
}

}  // namespace regatta::report
