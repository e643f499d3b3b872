// Events of `regatta probe`.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/link_names.h"
#include "regatta/app/report/internal/old_names.h"
#include "regatta/app/report/network_report.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::report {
namespace {

constexpr std::size_t kMatrixServersMost = 12;  // more servers: the worst pairs
constexpr std::size_t kDivergentPathsShown = 5;
constexpr std::size_t kServersNamed = 6;

constexpr const char* kNotMeasured = "-";
constexpr const char* kNotMeasuredHelp =
    "-: no probe is sent between the two, or none was answered in time\n";

using OldNames = std::initializer_list<std::pair<const char*, const char*>>;

std::string event_line(nlohmann::json event, OldNames new_and_old = {}) {
  add_old_names(event, new_and_old);
  return json_line(std::move(event)) + "\n";
}

// The server that the culprit is, or is a part of; "" of links and switches.
std::string server_of(const topo::Graph& graph, const diag::Culprit& culprit) {
  const bool is_of_server = culprit.kind == diag::CulpritKind::kNic ||
                            culprit.kind == diag::CulpritKind::kServer ||
                            culprit.kind == diag::CulpritKind::kHostNoise;
  return is_of_server ? graph.nodes[culprit.node.index()].name : "";
}

// "0 %", "12.3 %", or "-" for a share of nothing.
std::string loss_share(std::uint64_t part, std::uint64_t all) {
  if (all == 0) return kNotMeasured;
  if (part == 0) return "0 %";
  return format_percent(static_cast<double>(part) / static_cast<double>(all));
}

std::string latency_text(const probe::PairSum& sum) {
  if (sum.answers == 0) return kNotMeasured;
  return format_seconds({sum.total_us / static_cast<double>(sum.answers) * 1e-6});
}

// One line, or "" where probes distinguish all links.
std::string overlaps_in_short(const probe::Coverage& coverage) {
  std::vector<std::string> parts;
  if (!coverage.hidden.empty())
    parts.push_back(pluralized(coverage.hidden.size(), "pair") +
                    " of links that every path crosses together");
  if (!coverage.hidden_by_two.empty())
    parts.push_back(pluralized(coverage.hidden_by_two.size(), "link") +
                    " whose loss two others can hide");
  if (parts.empty()) return {};
  return "probes alone cannot distinguish " + join(parts, ", ") + "; --coverage lists them\n";
}

}  // namespace

// "   1.25 s  text"
std::string timed_line(Seconds at, const std::string& event) {
  return fmt::format("{:>7.2f} s  {}\n", at.value, event);
}

std::string healer_awaited_text(const std::string& socket) {
  return socket + ": no healer listens there yet; this looks for it, start regatta heal\n";
}

std::string healer_found_text(const std::string& socket) {
  return socket + ": a healer listens now\n";
}

std::string healer_lost_text(const std::string& socket) {
  return socket + ": the healer is gone; this looks for it again, start regatta heal\n";
}

std::string healer_back_text(const std::string& socket) {
  return socket + ": the healer is back\n";
}

std::string ProbeEventFormat::coverage(const probe::Coverage& coverage) const {
  if (!options_.is_json)
    return fmt::format(
        "{} probes cover {}{}", matrix_.probes.size(), coverage_text(graph_, coverage),
        options_.lists_overlaps ? overlaps_text(graph_, coverage) : overlaps_in_short(coverage));
  nlohmann::json links = nlohmann::json::object();
  for (std::uint32_t link = 0; link < 2 * graph_.links.size(); ++link) {
    const auto paths = coverage.paths_of(link);
    links[probe::link_text(graph_, link)] = std::vector<std::uint32_t>(paths.begin(), paths.end());
  }
  nlohmann::json hidden = nlohmann::json::array();
  for (const auto& [link, other] : coverage.hidden)
    hidden.push_back({probe::link_text(graph_, link), probe::link_text(graph_, other)});
  return event_line(
      {{"event", "coverage"},
       {"probes", matrix_.probes.size()},
       {"paths", links},
       {"missing", link_names(graph_, coverage.missing, probe::link_text)},
       {"thin", link_names(graph_, coverage.thin, probe::link_text)},
       {"always_together", hidden},
       {"hidden_by_two", link_names(graph_, coverage.hidden_by_two, probe::link_text)}},
      {{"paths", "ways"}});
}

std::string ProbeEventFormat::listening(const std::string& address) const {
  if (options_.is_json) return event_line({{"event", "listens"}, {"at", address}});
  return fmt::format(
      "listening at {}; on each server: regatta-prober CLUSTER --server NAME --collector "
      "THIS_HOST:{}\n",
      address, address.substr(address.rfind(':') + 1));
}

std::string ProbeEventFormat::reporting(const probe::ReporterStatus& status) const {
  std::vector<std::string> missing;
  for (const NodeId node : status.missing())
    missing.push_back(server(node.index()));
  if (options_.is_json)
    return event_line({{"event", "reporting"},
                       {"reporting", status.reporting()},
                       {"servers", status.servers()},
                       {"missing", missing}});
  std::string text = fmt::format("{} of {} servers report", status.reporting(), status.servers());
  if (!missing.empty()) text += "; not yet: " + shortened_list(std::move(missing), kServersNamed);
  return text + "\n";
}

std::string ProbeEventFormat::reporter_change(const probe::ReporterChange& change,
                                              const probe::ReporterStatus& status,
                                              Seconds at) const {
  const std::string& name = server(change.server.index());
  if (options_.is_json)
    return event_line({{"event", change.is_silent ? "silent" : "heard"},
                       {"seconds", at.value},
                       {"server", name},
                       {"silence_s", change.silence.value},
                       {"reporting", status.reporting()},
                       {"servers", status.servers()}});
  std::string what = "reports";
  if (change.is_silent) what = "has been silent for " + format_seconds(change.silence);
  if (!change.is_silent && change.silence.value > 0)
    what = "reports again after " + format_seconds(change.silence);
  // When most servers are silent, this host's network is the likelier cause.
  const bool is_alone = change.is_silent && 2 * status.reporting() < status.servers();
  return timed_line(at, fmt::format("server {}: its prober {}; {} of {} servers report{}", name,
                                    what, status.reporting(), status.servers(),
                                    is_alone ? ": check the network of this host first" : ""));
}

std::string ProbeEventFormat::refusal(const probe::RefusedReporter& refusal, Seconds at) const {
  if (options_.is_json)
    return event_line({{"event", "refused"},
                       {"seconds", at.value},
                       {"from", refusal.from},
                       {"why", refusal.why}});
  return timed_line(at, fmt::format("refused {}: {}", refusal.from, refusal.why));
}

std::string ProbeEventFormat::verdict(const std::string& event, const diag::FaultVerdict& verdict,
                                      Seconds at) const {
  std::vector<std::string> alternatives;
  std::vector<std::string> checks;
  for (const diag::Culprit& other : verdict.alternatives) {
    alternatives.push_back(to_string(graph_, other));
    checks.push_back(distinguishing_check(graph_, verdict.culprit, other));
  }
  if (options_.is_json) {
    nlohmann::json fields = {{"event", event},
                             {"seconds", at.value},
                             {"culprit", to_string(graph_, verdict.culprit)},
                             {"kind", std::string(to_string(verdict.culprit.kind))},
                             {"is_fault", diag::is_fault(verdict)},
                             {"symptom", std::string(to_string(verdict.symptom))},
                             {"loss_share", verdict.loss_share},
                             {"confidence", verdict.confidence},
                             {"sent", verdict.evidence.sent},
                             {"lost", verdict.evidence.lost},
                             {"paths", verdict.evidence.paths},
                             {"paths_hit", verdict.evidence.paths_hit},
                             {"since_s", verdict.since.value},
                             {"at_s", verdict.at.value},
                             {"or", alternatives},
                             {"told_apart_by", checks}};
    if (const std::string server = server_of(graph_, verdict.culprit); !server.empty())
      fields["server"] = server;
    return event_line(std::move(fields), {{"paths", "ways"}, {"paths_hit", "ways_hit"}});
  }
  if (event == "over") return timed_line(at, to_string(graph_, verdict.culprit) + ": over");
  if (event == "changed") return timed_line(at, to_string(graph_, verdict) + " (changed)");
  std::string text = timed_line(at, to_string(graph_, verdict));
  for (std::size_t i = 0; i < alternatives.size(); ++i)
    text += fmt::format("           or {}; to tell: {}\n", alternatives[i], checks[i]);
  return text;
}

std::string ProbeEventFormat::faults(const diag::FaultChanges& changes, Seconds at) const {
  std::string text;
  for (const diag::FaultVerdict& one : changes.over)
    text += verdict("over", one, at);
  for (const diag::FaultVerdict& one : changes.begun)
    text += verdict("begun", one, at);
  for (const diag::FaultVerdict& one : changes.changed)
    text += verdict("changed", one, at);
  return text;
}

std::string ProbeEventFormat::evidence(const diag::FaultVerdict& first,
                                       const diag::FaultVerdict& now,
                                       const probe::CollectedEvidence& evidence, Seconds at) const {
  const std::string culprit = to_string(graph_, now.culprit);
  std::vector<std::string> ruled_out;
  for (const diag::Culprit& other : first.alternatives)
    if (std::ranges::find(now.alternatives, other) == now.alternatives.end())
      ruled_out.push_back(to_string(graph_, other));
  if (options_.is_json)
    return event_line({{"event", "evidence"},
                       {"seconds", at.value},
                       {"culprit", culprit},
                       {"traced_before", evidence.before_sent},
                       {"answered_before", evidence.before_answered},
                       {"traced_behind", evidence.behind_sent},
                       {"answered_behind", evidence.behind_answered},
                       {"segments", evidence.segments},
                       {"sent_again", evidence.again},
                       {"other_segments", evidence.other_segments},
                       {"other_sent_again", evidence.other_again},
                       {"confidence", now.confidence},
                       {"ruled_out", ruled_out}});
  std::vector<std::string> answers;
  const auto add = [&](std::uint32_t answered, std::uint32_t sent, const char* where) {
    if (sent > 0)
      answers.push_back(fmt::format("{} of {} traces {} it ({})", answered, sent, where,
                                    loss_share(answered, sent)));
  };
  add(evidence.before_answered, evidence.before_sent, "before");
  add(evidence.behind_answered, evidence.behind_sent, "behind");
  std::vector<std::string> parts;
  if (evidence.has_traces()) parts.push_back("routers answered " + join(answers, " and "));
  if (evidence.has_connections())
    parts.push_back(fmt::format(
        "connections over it retransmitted {} of {} segments ({}), other connections {}",
        evidence.again, evidence.segments, loss_share(evidence.again, evidence.segments),
        loss_share(evidence.other_again, evidence.other_segments)));
  if (!ruled_out.empty()) parts.push_back("ruled out: " + join(ruled_out, ", "));
  return timed_line(at, culprit + ": " + join(parts, "; "));
}

std::string ProbeEventFormat::suspicion(const diag::LossSuspicion& suspicion, Seconds at) const {
  if (!options_.is_json)
    return timed_line(
        at, "suspected: " + diag::to_string(graph_, suspicion) + "; probes lose nothing there");
  std::vector<std::string> alternatives;
  for (const diag::Culprit& other : suspicion.alternatives)
    alternatives.push_back(to_string(graph_, other));
  nlohmann::json event{{"event", "suspected"},
                       {"seconds", at.value},
                       {"source", "connections"},
                       {"culprit", to_string(graph_, suspicion.culprit)},
                       {"kind", std::string(to_string(suspicion.culprit.kind))},
                       {"is_fault", false},
                       {"protocol", "tcp"},
                       {"connections", suspicion.connections},
                       {"connections_hit", suspicion.connections_hit},
                       {"segments", suspicion.segments},
                       {"sent_again", suspicion.again},
                       {"other_connections", suspicion.other_connections},
                       {"other_segments", suspicion.other_segments},
                       {"other_sent_again", suspicion.other_again},
                       {"confidence", suspicion.confidence},
                       {"or", alternatives}};
  if (suspicion.side != diag::PortSide::kAny)
    event[suspicion.side == diag::PortSide::kSource ? "from_ports" : "to_ports"] = {
        suspicion.first_port, suspicion.last_port};
  return event_line(std::move(event));
}

std::string ProbeEventFormat::divergent_paths(const std::vector<probe::DivergentPath>& paths,
                                              Seconds at) {
  std::string text;
  for (const probe::DivergentPath& one : paths) {
    const std::string path = path_text(one.path);
    const std::string planned = probe::link_text(graph_, one.planned);
    const std::string taken = probe::link_text(graph_, one.taken);
    if (options_.is_json) {
      text += event_line({{"event", "elsewhere"},
                          {"seconds", at.value},
                          {"path", path},
                          {"planned", planned},
                          {"actual", taken}},
                         {{"path", "way"}, {"actual", "taken"}});
      continue;
    }
    if (++divergent_shown_ == kDivergentPathsShown + 1) text += "           and others\n";
    if (divergent_shown_ <= kDivergentPathsShown)
      text +=
          timed_line(at, fmt::format("the path {} uses {} instead of {}", path, taken, planned));
  }
  return text;
}

std::string ProbeEventFormat::survey(const probe::EvidenceCollector& evidence, Seconds at) const {
  const auto& known = evidence.known();
  if (options_.is_json)
    return event_line({{"event", "surveyed"},
                       {"seconds", at.value},
                       {"paths", known.count()},
                       {"confirmed", known.confirmed()},
                       {"divergent", known.elsewhere()}},
                      {{"paths", "ways"}, {"divergent", "elsewhere"}});
  std::string text =
      fmt::format("traceroutes confirm {} of {} paths", known.confirmed(), known.count());
  if (known.elsewhere() > 0)
    text += fmt::format("; {} differ: switches hash differently from the cluster file",
                        known.elsewhere());
  return timed_line(at, text);
}

std::string ProbeEventFormat::remapped(const probe::EvidenceCollector& evidence, Seconds at) const {
  const auto& known = evidence.known();
  const std::string text =
      options_.is_json
          ? event_line({{"event", "remapped"},
                        {"seconds", at.value},
                        {"confirmed", known.confirmed()},
                        {"divergent", known.elsewhere()}},
                       {{"divergent", "elsewhere"}})
          : timed_line(at,
                       fmt::format("measured paths replace the planned ones; {} of {} are measured",
                                   known.confirmed(), known.count()));
  return text + coverage(probe::cover(graph_, matrix_));
}

// "from s0 (10.64.0.0:27903) to s3 (10.64.0.6:27900)".
std::string ProbeEventFormat::path_text(std::uint32_t path) const {
  fabric::FiveTuple flow = matrix_.probes[path / 2].flow;
  if (path % 2 == 1) flow = probe::answer_to(flow);
  const auto links = matrix_.paths.links(path);
  const auto name = [&](std::uint32_t link) {
    return graph_.nodes[graph_.links[link / 2].a.index()].name;
  };
  return fmt::format("from {} ({}:{}) to {} ({}:{})", name(links.front()),
                     topo::address_text(flow.from), flow.from_port, name(links.back()),
                     topo::address_text(flow.to), flow.to_port);
}

std::string ProbeEventFormat::pairs(const probe::Collector& collector) const {
  if (!options_.is_json)
    return collector.servers() <= kMatrixServersMost ? loss_and_latency(collector)
                                                     : worst_pairs(collector);
  nlohmann::json pairs = nlohmann::json::array();
  for (std::size_t from = 0; from < collector.servers(); ++from)
    for (std::size_t to = 0; to < collector.servers(); ++to) {
      const probe::PairSum& sum = collector.pair(from, to);
      if (sum.sent == 0) continue;
      pairs.push_back(
          {{"from", server(from)},
           {"to", server(to)},
           {"sent", sum.sent},
           {"lost", sum.lost},
           {"least_us", sum.least_us},
           {"mean_us", sum.answers == 0 ? 0 : sum.total_us / static_cast<double>(sum.answers)},
           {"most_us", sum.most_us}});
    }
  return event_line({{"event", "pairs"}, {"pairs", pairs}});
}

std::string ProbeEventFormat::restarted(const std::string& server, Seconds at) const {
  if (options_.is_json)
    return event_line({{"event", "restarted"}, {"at_s", at.value}, {"server", server}});
  return timed_line(at, fmt::format("the prober of {} had ended; it is started again", server));
}

std::string ProbeEventFormat::summary(const probe::Coverage& coverage, const Totals& totals) const {
  const std::size_t links = graph_.links.size();
  std::set<std::uint32_t> uncovered;  // cables, in some direction
  for (const std::uint32_t link : coverage.missing)
    uncovered.insert(link / 2);
  if (options_.is_json) {
    nlohmann::json event{{"event", "summary"},
                         {"seconds", totals.time.value},
                         {"healthy", totals.faults == 0 && totals.probes > 0},
                         {"faults", totals.faults},
                         {"links", links},
                         {"never_covered", uncovered.size()},
                         {"restarted_probers", totals.restarts},
                         {"probes", totals.probes},
                         {"paths", matrix_.paths.size()}};
    if (totals.counters) {
      event["counter_lines"] = totals.counters->all;
      event["counter_lines_left_out"] = totals.counters->left_out;
    }
    return event_line(std::move(event));
  }
  if (totals.probes == 0) return "no probe was sent\n";
  const std::string restarts =
      totals.restarts == 0
          ? ""
          : fmt::format(", {} started again", pluralized(totals.restarts, "prober"));
  const std::string counters =
      totals.counters
          ? fmt::format(", {} of counters ({} left out)", pluralized(totals.counters->all, "line"),
                        totals.counters->left_out)
          : "";
  return fmt::format("{}: {}, {}, {} never covered; {} probes of {} paths over {:.0f} s{}{}\n",
                     totals.faults == 0 ? "healthy" : "faulty", pluralized(links, "link"),
                     pluralized(totals.faults, "fault"), uncovered.size(), totals.probes,
                     matrix_.paths.size(), totals.time.value, restarts, counters);
}

std::string ProbeEventFormat::loss_and_latency(const probe::Collector& collector) const {
  bool has_gaps = false;
  std::string text;
  for (const bool is_loss : {false, true}) {
    std::vector<std::vector<std::string>> rows = {{is_loss ? "loss" : "latency"}};
    for (std::size_t to = 0; to < collector.servers(); ++to)
      rows[0].push_back(server(to));
    for (std::size_t from = 0; from < collector.servers(); ++from) {
      rows.push_back({server(from)});
      for (std::size_t to = 0; to < collector.servers(); ++to) {
        const probe::PairSum& sum = collector.pair(from, to);
        rows.back().push_back(is_loss ? loss_share(sum.lost, sum.sent) : latency_text(sum));
        has_gaps = has_gaps || rows.back().back() == kNotMeasured;
      }
    }
    text += "\n" + format_table(rows);
  }
  return has_gaps ? text + kNotMeasuredHelp : text;
}

std::string ProbeEventFormat::worst_pairs(const probe::Collector& collector) const {
  struct Pair {
    std::size_t from;
    std::size_t to;
  };
  std::vector<Pair> worst;
  for (std::size_t from = 0; from < collector.servers(); ++from)
    for (std::size_t to = 0; to < collector.servers(); ++to)
      if (collector.pair(from, to).sent > 0) worst.push_back({from, to});
  const auto badness = [&](const Pair& pair) {
    const probe::PairSum& sum = collector.pair(pair.from, pair.to);
    return std::pair(static_cast<double>(sum.lost) / static_cast<double>(sum.sent), sum.most_us);
  };
  std::ranges::sort(worst, std::ranges::greater(), badness);
  worst.resize(std::min<std::size_t>(worst.size(), 20));
  std::vector<std::vector<std::string>> rows = {{"worst pairs", "to", "loss", "latency", "most"}};
  bool has_gaps = false;
  for (const Pair& pair : worst) {
    const probe::PairSum& sum = collector.pair(pair.from, pair.to);
    rows.push_back({server(pair.from), server(pair.to), loss_share(sum.lost, sum.sent),
                    latency_text(sum),
                    sum.answers == 0 ? kNotMeasured : format_seconds({sum.most_us * 1e-6})});
    has_gaps = has_gaps || sum.answers == 0;
  }
  return "\n" + format_table(rows) + (has_gaps ? kNotMeasuredHelp : "");
}

}  // namespace regatta::report
