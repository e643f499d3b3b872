#include "regatta/app/cli/internal/probe_output.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/pluralized.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kWidest = 12;         // servers in a matrix; of more the worst pairs
constexpr std::size_t kElsewhereNamed = 5;  // of ways

constexpr const char* kNothing = "-";
constexpr const char* kNothingHelp =
    "-: no probe goes from the one to the other, or none was answered in time to be measured\n";

void print_line(const nlohmann::json& line) {
  fmt::print("{}\n", json_line(line));
  std::fflush(stdout);
}

std::vector<std::string> texts(const topo::Graph& graph, const std::vector<std::uint32_t>& links) {
  std::vector<std::string> all;
  all.reserve(links.size());
  for (const std::uint32_t link : links)
    all.push_back(probe::link_text(graph, link));
  return all;
}

std::string loss_text(const probe::PairSum& sum) {
  if (sum.sent == 0) return kNothing;
  return sum.lost == 0
             ? "0 %"
             : format_percent(static_cast<double>(sum.lost) / static_cast<double>(sum.sent));
}

std::string share_text(std::uint64_t part, std::uint64_t all) {
  if (all == 0) return kNothing;
  if (part == 0) return "0 %";
  return format_percent(static_cast<double>(part) / static_cast<double>(all));
}

std::string latency_text(const probe::PairSum& sum) {
  if (sum.answers == 0) return kNothing;
  return format_seconds({sum.total_us / static_cast<double>(sum.answers) * 1e-6});
}

// One line, where there is anything.
std::string overlaps_in_short(const probe::Coverage& coverage) {
  std::vector<std::string> parts;
  if (!coverage.hidden.empty())
    parts.push_back(pluralized(coverage.hidden.size(), "pair") +
                    " of links always crossed together");
  if (!coverage.hidden_by_two.empty())
    parts.push_back(pluralized(coverage.hidden_by_two.size(), "link") +
                    " that two others can hide");
  if (parts.empty()) return {};
  return "probes alone cannot tell all apart: " + join(parts, ", ") + "; --coverage lists them\n";
}

}  // namespace

void ProbeOutput::coverage(const probe::Coverage& coverage) const {
  if (!json_) {
    fmt::print("{} probes cover {}{}", matrix_.probes.size(), coverage_text(graph_, coverage),
               lists_ ? overlaps_text(graph_, coverage) : overlaps_in_short(coverage));
    std::fflush(stdout);
    return;
  }
  nlohmann::json links = nlohmann::json::object();
  for (std::uint32_t link = 0; link < 2 * graph_.links.size(); ++link) {
    const auto ways = coverage.ways_of(link);
    links[probe::link_text(graph_, link)] = std::vector<std::uint32_t>(ways.begin(), ways.end());
  }
  nlohmann::json hidden = nlohmann::json::array();
  for (const auto& [link, other] : coverage.hidden)
    hidden.push_back({probe::link_text(graph_, link), probe::link_text(graph_, other)});
  print_line({{"event", "coverage"},
              {"probes", matrix_.probes.size()},
              {"ways", links},
              {"missing", texts(graph_, coverage.missing)},
              {"thin", texts(graph_, coverage.thin)},
              {"always_together", hidden},
              {"hidden_by_two", texts(graph_, coverage.hidden_by_two)}});
}

void ProbeOutput::listens(const std::string& address) const {
  if (json_) return print_line({{"event", "listens"}, {"at", address}});
  fmt::print(
      "listening at {}; on each server: regatta-prober CLUSTER --server NAME --collector "
      "THIS_HOST:{}\n",
      address, address.substr(address.rfind(':') + 1));
  std::fflush(stdout);
}

void ProbeOutput::reporting(const probe::ReporterStatus& roll) const {
  std::vector<std::string> missing;
  for (const NodeId node : roll.missing())
    missing.push_back(server(node.index()));
  if (json_)
    return print_line({{"event", "reporting"},
                       {"reporting", roll.reporting()},
                       {"servers", roll.servers()},
                       {"missing", missing}});
  fmt::print("{} of {} servers report", roll.reporting(), roll.servers());
  if (!missing.empty()) fmt::print("; not yet: {}", first_of(std::move(missing)));
  fmt::print("\n");
  std::fflush(stdout);
}

void ProbeOutput::roll(const probe::ReporterChange& news, const probe::ReporterStatus& roll,
                       Seconds since_begin) const {
  const std::string& name = server(news.server.index());
  if (json_)
    return print_line({{"event", news.is_silent ? "silent" : "heard"},
                       {"seconds", since_begin.value},
                       {"server", name},
                       {"silence_s", news.silence.value},
                       {"reporting", roll.reporting()},
                       {"servers", roll.servers()}});
  std::string what = "reports now";
  if (news.is_silent) what = "has been silent for " + format_seconds(news.silence);
  if (!news.is_silent && news.silence.value > 0)
    what = "is heard again after " + format_seconds(news.silence);
  // The locator blames nobody then: it is the reports that do not come.
  const bool is_alone = news.is_silent && 2 * roll.reporting() < roll.servers();
  fmt::print("{:>7.2f} s  server {}: its prober {}; {} of {} servers report{}\n", since_begin.value,
             name, what, roll.reporting(), roll.servers(),
             is_alone ? ": look at this host's own network first" : "");
  std::fflush(stdout);
}

void ProbeOutput::refusal(const probe::RefusedReporter& refusal, Seconds since_begin) const {
  if (json_)
    return print_line({{"event", "refused"},
                       {"seconds", since_begin.value},
                       {"from", refusal.from},
                       {"why", refusal.why}});
  fmt::print("{:>7.2f} s  refused {}: {}\n", since_begin.value, refusal.from, refusal.why);
  std::fflush(stdout);
}

void ProbeOutput::verdict(const char* event, const diag::FaultVerdict& verdict,
                          Seconds since_begin) const {
  if (!json_) {
    std::string text = to_string(graph_, verdict);
    if (std::string(event) == "over") text = to_string(graph_, verdict.culprit) + ": over";
    if (std::string(event) == "changed") text += " (it has changed)";
    fmt::print("{:>7.2f} s  {}\n", since_begin.value, text);
    for (const diag::Culprit& other : verdict.alternatives)
      if (std::string(event) == "begun") fmt::print("           or {}\n", to_string(graph_, other));
    std::fflush(stdout);
    return;
  }
  std::vector<std::string> alternatives;
  for (const diag::Culprit& other : verdict.alternatives)
    alternatives.push_back(to_string(graph_, other));
  print_line({{"event", event},
              {"seconds", since_begin.value},
              {"culprit", to_string(graph_, verdict.culprit)},
              {"kind", std::string(to_string(verdict.culprit.kind))},
              {"is_fault", diag::is_fault(verdict)},
              {"symptom", std::string(to_string(verdict.symptom))},
              {"loss_share", verdict.loss_share},
              {"confidence", verdict.confidence},
              {"sent", verdict.evidence.sent},
              {"lost", verdict.evidence.lost},
              {"ways", verdict.evidence.paths},
              {"ways_hit", verdict.evidence.paths_hit},
              {"since_s", verdict.since.value},
              {"at_s", verdict.at.value},
              {"or", alternatives}});
}

void ProbeOutput::news(const diag::FaultChanges& news, Seconds since_begin) const {
  for (const diag::FaultVerdict& one : news.over)
    verdict("over", one, since_begin);
  for (const diag::FaultVerdict& one : news.begun)
    verdict("begun", one, since_begin);
  for (const diag::FaultVerdict& one : news.changed)
    verdict("changed", one, since_begin);
}

void ProbeOutput::gathered(const diag::FaultVerdict& told, const diag::FaultVerdict& now,
                           const probe::CollectedEvidence& gathered, Seconds since_begin) const {
  const std::string culprit = to_string(graph_, now.culprit);
  std::vector<std::string> ruled_out;
  for (const diag::Culprit& other : told.alternatives)
    if (std::ranges::find(now.alternatives, other) == now.alternatives.end())
      ruled_out.push_back(to_string(graph_, other));
  if (json_)
    return print_line({{"event", "evidence"},
                       {"seconds", since_begin.value},
                       {"culprit", culprit},
                       {"traced_before", gathered.before_sent},
                       {"answered_before", gathered.before_answered},
                       {"traced_behind", gathered.behind_sent},
                       {"answered_behind", gathered.behind_answered},
                       {"segments", gathered.segments},
                       {"sent_again", gathered.again},
                       {"other_segments", gathered.other_segments},
                       {"other_sent_again", gathered.other_again},
                       {"confidence", now.confidence},
                       {"ruled_out", ruled_out}});
  std::vector<std::string> answers;
  const auto add = [&](std::uint32_t answered, std::uint32_t sent, const char* where) {
    if (sent > 0)
      answers.push_back(fmt::format("{} of {} traces {} it ({})", answered, sent, where,
                                    share_text(answered, sent)));
  };
  add(gathered.before_answered, gathered.before_sent, "before");
  add(gathered.behind_answered, gathered.behind_sent, "behind");
  std::vector<std::string> parts;
  if (gathered.has_traces()) parts.push_back("routers answered " + join(answers, " and "));
  if (gathered.has_connections())
    parts.push_back(fmt::format("connections over it sent {} of {} segments again ({}), others {}",
                                gathered.again, gathered.segments,
                                share_text(gathered.again, gathered.segments),
                                share_text(gathered.other_again, gathered.other_segments)));
  if (!ruled_out.empty()) parts.push_back("so it is not " + join(ruled_out, ", nor "));
  fmt::print("{:>7.2f} s  {}: {}\n", since_begin.value, culprit, join(parts, "; "));
  std::fflush(stdout);
}

void ProbeOutput::elsewhere(const std::vector<probe::DivergentPath>& ways, Seconds since_begin) {
  for (const probe::DivergentPath& one : ways) {
    const std::string way = path_text(one.way);
    const std::string planned = probe::link_text(graph_, one.planned);
    const std::string taken = probe::link_text(graph_, one.taken);
    if (json_) {
      print_line({{"event", "elsewhere"},
                  {"seconds", since_begin.value},
                  {"way", way},
                  {"planned", planned},
                  {"taken", taken}});
      continue;
    }
    if (++elsewhere_named_ == kElsewhereNamed + 1) fmt::print("           and so on\n");
    if (elsewhere_named_ <= kElsewhereNamed)
      fmt::print("{:>7.2f} s  the way {} takes {} instead of {}\n", since_begin.value, way, taken,
                 planned);
  }
  std::fflush(stdout);
}

void ProbeOutput::surveyed(const probe::EvidenceCollector& evidence_collector,
                           Seconds since_begin) const {
  if (json_)
    return print_line({{"event", "surveyed"},
                       {"seconds", since_begin.value},
                       {"ways", evidence_collector.known().count()},
                       {"confirmed", evidence_collector.known().confirmed()},
                       {"elsewhere", evidence_collector.known().elsewhere()}});
  fmt::print("{:>7.2f} s  traceroutes confirm {} of {} ways", since_begin.value,
             evidence_collector.known().confirmed(), evidence_collector.known().count());
  if (evidence_collector.known().elsewhere() > 0)
    fmt::print("; {} lead elsewhere: switches hash otherwise than the cluster file has it",
               evidence_collector.known().elsewhere());
  fmt::print("\n");
  std::fflush(stdout);
}

void ProbeOutput::remapped(const probe::EvidenceCollector& evidence_collector,
                           Seconds since_begin) const {
  if (json_)
    print_line({{"event", "remapped"},
                {"seconds", since_begin.value},
                {"confirmed", evidence_collector.known().confirmed()},
                {"elsewhere", evidence_collector.known().elsewhere()}});
  else
    fmt::print("{:>7.2f} s  from now on ways are as they were measured; {} of {} are known so\n",
               since_begin.value, evidence_collector.known().confirmed(),
               evidence_collector.known().count());
  coverage(probe::cover(graph_, matrix_));
}

// "from s0 (10.64.0.0:27903) to s3 (10.64.0.6:27900)".
std::string ProbeOutput::path_text(std::uint32_t way) const {
  fabric::FiveTuple flow = matrix_.probes[way / 2].flow;
  if (way % 2 == 1) flow = probe::answer_to(flow);
  const auto links = matrix_.ways.links(way);
  const auto name = [&](std::uint32_t link) {
    return graph_.nodes[graph_.links[link / 2].a.index()].name;
  };
  return fmt::format("from {} ({}:{}) to {} ({}:{})", name(links.front()),
                     topo::address_text(flow.from), flow.from_port, name(links.back()),
                     topo::address_text(flow.to), flow.to_port);
}

void ProbeOutput::pairs(const probe::Collector& collector) const {
  if (!json_)
    return collector.servers() <= kWidest ? loss_and_latency(collector) : worst_pairs(collector);
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
  print_line({{"event", "pairs"}, {"pairs", pairs}});
}

void ProbeOutput::loss_and_latency(const probe::Collector& collector) const {
  bool has_gaps = false;
  for (const bool is_loss : {false, true}) {
    std::vector<std::vector<std::string>> rows = {{is_loss ? "loss" : "latency"}};
    for (std::size_t to = 0; to < collector.servers(); ++to)
      rows[0].push_back(server(to));
    for (std::size_t from = 0; from < collector.servers(); ++from) {
      rows.push_back({server(from)});
      for (std::size_t to = 0; to < collector.servers(); ++to) {
        const probe::PairSum& sum = collector.pair(from, to);
        rows.back().push_back(is_loss ? loss_text(sum) : latency_text(sum));
        has_gaps = has_gaps || rows.back().back() == kNothing;
      }
    }
    fmt::print("\n{}", format_table(rows));
  }
  if (has_gaps) fmt::print("{}", kNothingHelp);
}

void ProbeOutput::worst_pairs(const probe::Collector& collector) const {
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
    rows.push_back({server(pair.from), server(pair.to), loss_text(sum), latency_text(sum),
                    sum.answers == 0 ? kNothing : format_seconds({sum.most_us * 1e-6})});
    has_gaps = has_gaps || sum.answers == 0;
  }
  fmt::print("\n{}{}", format_table(rows), has_gaps ? kNothingHelp : "");
}

}  // namespace regatta::cli
