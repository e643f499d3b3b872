#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/link_names.h"
#include "regatta/app/report/network_report.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::report {
namespace {

using link_rates::CounterFault;
using link_rates::CounterSupport;
using link_rates::LinkCounterTotals;
using link_rates::LinkRate;
using link_rates::PathMeasurement;
using link_rates::SlowLink;
using link_rates::SlowLinkAlternative;
using link_rates::TrainPath;
using nlohmann::json;

constexpr std::size_t kPathsShown = 3;
constexpr std::size_t kLinksNamed = 6;

std::string rate_event_line(json event) {
  return json_line(std::move(event)) + "\n";
}

double bits(BytesPerSecond rate) {
  return 8 * rate.value;
}

std::string share_of_rate(BytesPerSecond rate, BytesPerSecond described) {
  return fmt::format("{:.0f} %", 100 * (rate / described));
}

// A line below an event.
std::string detail_line(const std::string& text) {
  return "           " + text + "\n";
}

// "leaf0-spine1 both ways" where both directions are in the list.
std::vector<std::string> cable_names(const topo::Graph& graph,
                                     const std::set<std::uint32_t>& links) {
  std::vector<std::string> names;
  for (const std::uint32_t link : links) {
    if (!links.contains(link ^ 1U))
      names.push_back(probe::link_text(graph, link));
    else if (link % 2 == 0)
      names.push_back(graph.links[link / 2].name + " both ways");
  }
  return names;
}

const char* support_word(CounterSupport support) {
  switch (support) {
    case CounterSupport::kStrengthens:
      return "strengthens";
    case CounterSupport::kWeakens:
      return "weakens";
    case CounterSupport::kNone:
      break;
  }
  return "none";
}

std::string totals_text(const LinkCounterTotals& totals) {
  std::vector<std::string> parts;
  if (totals.port_rate) parts.push_back("ports at " + format_bits_per_second(*totals.port_rate));
  if (totals.time.value > 0)
    parts.push_back("at most " + format_bits_per_second(totals.peak) + " in a reading");
  if (totals.drops) parts.push_back(fmt::format("{} drops", *totals.drops));
  if (totals.errors) parts.push_back(fmt::format("{} errors", *totals.errors));
  if (totals.waiting_intervals > 0)
    parts.push_back(fmt::format("packets waited in {} readings", totals.waiting_intervals));
  return parts.empty() ? "no counters" : join(parts, ", ");
}

json totals_json(const LinkCounterTotals& totals) {
  json one{{"seconds", totals.time.value},
           {"peak_bps", bits(totals.peak)},
           {"waiting_readings", totals.waiting_intervals},
           {"paused_readings", totals.paused_intervals}};
  if (totals.port_rate) one["port_bps"] = bits(*totals.port_rate);
  if (totals.packets) one["packets"] = *totals.packets;
  if (totals.drops) one["drops"] = *totals.drops;
  if (totals.errors) one["errors"] = *totals.errors;
  return one;
}

}  // namespace

std::string RateEventFormat::name(std::uint32_t link) const {
  return probe::link_text(graph_, link);
}

// "s0 to s2, port 27953, 2 of 4 links"
std::string RateEventFormat::path_name(const TrainPath& path) const {
  const auto server = [&](LinkId nic) {
    return graph_.nodes[graph_.links[nic.index()].a.index()].name;
  };
  return fmt::format("{} to {}, port {}, {} of {} links", server(path.from), server(path.to),
                     path.flow.from_port, path.loaded, path.links.size());
}

std::string RateEventFormat::plan(const link_rates::RatePlan& plan, double share) const {
  if (is_json_)
    return rate_event_line({{"event", "plan"},
                            {"paths", plan.paths.size()},
                            {"links", 2 * graph_.links.size()},
                            {"share", share},
                            {"missing", link_names(graph_, plan.missing, probe::link_text)}});
  std::string text = fmt::format(
      "trains over {} paths measure {} directed links, each for at most {} of the time\n",
      plan.paths.size(), 2 * graph_.links.size() - plan.missing.size(), format_percent(share));
  if (!plan.missing.empty())
    text += "no path between two servers ends at " +
            shortened_list(link_names(graph_, plan.missing, probe::link_text), kLinksNamed) + "\n";
  return text;
}

std::string RateEventFormat::listening(const std::string& address) const {
  if (is_json_) return rate_event_line({{"event", "listens"}, {"at", address}});
  return fmt::format(
      "listening at {}; on each server: regatta rates serve --server NAME --controller "
      "THIS_HOST:{}\n",
      address, address.substr(address.rfind(':') + 1));
}

std::string RateEventFormat::reporting(std::size_t reporting, std::size_t servers) const {
  if (is_json_)
    return rate_event_line(
        {{"event", "reporting"}, {"reporting", reporting}, {"servers", servers}});
  return fmt::format("{} of {} servers report\n", reporting, servers);
}

std::string RateEventFormat::learned(const link_rates::PortDiscovery& discovery, Seconds at) const {
  const std::vector<std::uint32_t> thin = discovery.thin_links();
  if (is_json_)
    return rate_event_line({{"event", "learned"},
                            {"seconds", at.value},
                            {"paths", discovery.paths().size()},
                            {"traced", discovery.traced()},
                            {"unanswered", discovery.unanswered()},
                            {"thin", link_names(graph_, thin, probe::link_text)}});
  std::string text = fmt::format("{} paths are known from {} traces in {}",
                                 discovery.paths().size(), discovery.traced(), format_duration(at));
  if (discovery.unanswered() > 0)
    text += fmt::format(", {} have routers that do not answer", discovery.unanswered());
  if (!thin.empty())
    text +=
        ", too few over " + shortened_list(link_names(graph_, thin, probe::link_text), kLinksNamed);
  return text + "\n";
}

std::string RateEventFormat::progress(std::size_t arrived, std::size_t paths,
                                      std::size_t busy_links, Seconds at) const {
  if (is_json_)
    return rate_event_line({{"event", "progress"},
                            {"seconds", at.value},
                            {"trains", arrived},
                            {"paths", paths},
                            {"busy_links", busy_links}});
  return timed_line(at, fmt::format("{} trains have arrived over {} paths{}", arrived, paths,
                                    busy_links == 0 ? ""
                                                    : fmt::format("; {} with other traffic wait",
                                                                  pluralized(busy_links, "link"))));
}

std::string RateEventFormat::slow(const SlowLink& slow,
                                  const std::vector<PathMeasurement>& measurements,
                                  const LinkCounterTotals* totals, Seconds at) const {
  const CounterSupport support =
      totals == nullptr ? CounterSupport::kNone
                        : link_rates::support_of_slow_link(*totals, slow.measured, slow.described);
  const auto paths_json = [&](const std::vector<std::size_t>& paths) {
    json list = json::array();
    for (const std::size_t path : paths)
      list.push_back({{"path", path_name(measurements[path].path)},
                      {"bps", bits(measurements[path].rate)},
                      {"trains", measurements[path].trains}});
    return list;
  };
  if (is_json_) {
    json others = json::array();
    for (const SlowLinkAlternative& other : slow.alternatives)
      others.push_back(
          {{"link", name(other.link)},
           {"separator", other.separator ? json(path_name(*other.separator)) : json()}});
    json event{{"event", "slow"},
               {"seconds", at.value},
               {"link", name(slow.link)},
               {"cable", graph_.links[slow.link / 2].name},
               {"described_bps", bits(slow.described)},
               {"measured_bps", bits(slow.measured)},
               {"slow_paths", paths_json(slow.slow_paths)},
               {"fast_before", paths_json(slow.fast_before)},
               {"or", others},
               {"counters", support_word(support)}};
    if (totals != nullptr) event["counter_totals"] = totals_json(*totals);
    return rate_event_line(std::move(event));
  }
  const auto paths_text = [&](const std::vector<std::size_t>& paths) {
    std::vector<std::string> list;
    for (const std::size_t path : paths)
      list.push_back(format_bits_per_second(measurements[path].rate) + " (" +
                     path_name(measurements[path].path) + ")");
    return shortened_list(list, kPathsShown);
  };
  std::string text = timed_line(
      at, fmt::format("slow: {} carries {} of {}, {}", name(slow.link),
                      format_bits_per_second(slow.measured), format_bits_per_second(slow.described),
                      share_of_rate(slow.measured, slow.described)));
  text += detail_line("with it: " + paths_text(slow.slow_paths));
  if (!slow.fast_before.empty())
    text += detail_line("without it, up to it: " + paths_text(slow.fast_before));
  for (const SlowLinkAlternative& other : slow.alternatives)
    text += detail_line(
        "or: " + name(other.link) +
        (other.separator
             ? "; a train tells them apart: " + path_name(*other.separator)
             : "; no train tells them apart: read the ports' counters (regatta rates counters)"));
  if (totals != nullptr)
    text += detail_line(fmt::format(
        "counters{}: {}",
        support == CounterSupport::kNone ? "" : std::string(" ") + support_word(support) + " this",
        totals_text(*totals)));
  return text;
}

std::string RateEventFormat::rates(const std::vector<LinkRate>& links) const {
  if (is_json_) {
    json list = json::array();
    for (const LinkRate& link : links)
      list.push_back({{"link", name(link.link)},
                      {"described_bps", bits(link.described)},
                      {"at_least_bps", bits(link.at_least)},
                      {"is_measured", link.is_measured}});
    return rate_event_line({{"event", "rates"}, {"links", list}});
  }
  std::vector<std::vector<std::string>> rows{{"link", "described", "measured", ""}};
  for (const LinkRate& link : links) {
    const bool has_any = link.at_least.value > 0;
    rows.push_back({name(link.link), format_bits_per_second(link.described),
                    has_any ? format_bits_per_second(link.at_least) : "-",
                    link.is_measured ? ""
                    : has_any        ? "at least: a narrower or slow link or the sender limits it"
                                     : "no train arrived"});
  }
  return format_table(rows);
}

std::string RateEventFormat::summary(const link_rates::RateVerdicts& verdicts,
                                     const Totals& totals) const {
  std::set<std::uint32_t> slow;
  for (const SlowLink& one : verdicts.slow)
    slow.insert(one.link);
  const auto unmeasured = static_cast<std::size_t>(
      std::ranges::count_if(verdicts.links, [](const LinkRate& one) { return !one.is_measured; }));
  const bool is_complete =
      verdicts.unexplained == 0 && std::ranges::all_of(verdicts.links, [](const LinkRate& one) {
        return one.at_least.value > 0;
      });
  const bool is_healthy = slow.empty() && is_complete;
  if (is_json_)
    return rate_event_line({{"event", "summary"},
                            {"healthy", is_healthy},
                            {"links", verdicts.links.size()},
                            {"slow", slow.size()},
                            {"not_measured", unmeasured},
                            {"unexplained_paths", verdicts.unexplained},
                            {"trains", totals.trains},
                            {"busy_links", totals.busy_links},
                            {"largest_share", totals.largest_share},
                            {"seconds", totals.time.value}});
  if (totals.trains == 0) return "no train arrived\n";
  std::string text = fmt::format("{}: {} directed links, {} slow",
                                 !slow.empty() ? "slow"
                                 : is_healthy  ? "healthy"
                                               : "incomplete",
                                 verdicts.links.size(), slow.size());
  if (!slow.empty()) text += " (" + shortened_list(cable_names(graph_, slow), kLinksNamed) + ")";
  text += fmt::format(", {} not measured", unmeasured);
  if (totals.busy_links > 0) text += fmt::format(", {} with other traffic", totals.busy_links);
  if (verdicts.unexplained > 0)
    text +=
        fmt::format(", {} that no link explains", pluralized(verdicts.unexplained, "slow path"));
  return text + fmt::format("; {} trains in {}, at most {} of a link\n", totals.trains,
                            format_duration(totals.time), format_percent(totals.largest_share));
}

std::string RateEventFormat::counter_fault(const CounterFault& fault) const {
  const std::vector<std::string> causes = link_rates::other_causes(fault.kind);
  const std::string test = link_rates::separating_test(fault.kind);
  if (is_json_) {
    return rate_event_line({{"event", "fault"},
                            {"link", name(fault.link)},
                            {"cable", graph_.links[fault.link / 2].name},
                            {"kind", to_string(fault.kind)},
                            {"described_bps", bits(fault.described)},
                            {"measured_bps", bits(fault.measured)},
                            {"share", fault.share},
                            {"or", causes},
                            {"separating_test", test},
                            {"counter_totals", totals_json(fault.totals)}});
  }
  std::string text = to_string(fault.kind) + ": " + name(fault.link);
  if (fault.measured.value > 0)
    text += fmt::format(" carries {} of {}, {}", format_bits_per_second(fault.measured),
                        format_bits_per_second(fault.described),
                        share_of_rate(fault.measured, fault.described));
  else
    text += fmt::format(", {:.2g} of its packets", fault.share);
  return text + "\n" + detail_line("counters: " + totals_text(fault.totals)) +
         detail_line("because of: " + join(causes, "; or ")) + detail_line("to tell: " + test);
}

std::string RateEventFormat::counter_summary(const std::vector<CounterFault>& faults,
                                             const link_rates::SwitchCounterTotals& totals) const {
  std::set<std::uint32_t> links;
  for (const CounterFault& fault : faults)
    links.insert(fault.link);
  if (is_json_)
    return rate_event_line({{"event", "summary"},
                            {"healthy", faults.empty()},
                            {"ports", totals.ports()},
                            {"faults", faults.size()}});
  return fmt::format(
      "{}: {} read, {} faulty{}\n", faults.empty() ? "healthy" : "faulty",
      pluralized(totals.ports(), "port"), pluralized(faults.size(), "directed link"),
      faults.empty() ? "" : " (" + shortened_list(cable_names(graph_, links), kLinksNamed) + ")");
}

}  // namespace regatta::report
