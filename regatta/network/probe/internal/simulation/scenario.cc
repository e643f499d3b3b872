#include "regatta/network/probe/internal/simulation/scenario.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/diag/baselines.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/probe/internal/simulation/simulated_settings.h"

namespace regatta::probe {
namespace {

Error wrong(const std::string& text) {
  return {Code::kInvalidInput, text};
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

Result<Scenario> parse_line(std::string_view line) {
  const std::vector<std::string> parts = split(line, ';');
  std::vector<std::string> words = words_of(parts[0]);
  if (words.size() < 6 || (words[3] != "quiet" && words[3] != "busy"))
    return wrong("write NAME CLUSTER SEED quiet|busy FAULT, or none TIME for the fault");
  Scenario one;
  one.name = words[0];
  one.cluster = words[1];
  const auto seed = parse_number<decltype(one.seed)>(words[2]);
  if (!seed) return wrong("seed " + printable(words[2], 20) + ": must be a whole number");
  one.seed = *seed;
  one.is_busy = words[3] == "busy";
  if (words[4] == "none") {
    if (words.size() != 6 || parts.size() != 1) return wrong("none: is followed by a time only");
    REGATTA_TRY(lasts, parse_seconds(words[5]));
    one.lasts = lasts;
    return one;
  }
  words.erase(words.begin(), words.begin() + 4);
  one.faults.push_back(join(words, " "));
  for (std::size_t i = 1; i < parts.size(); ++i)
    one.faults.emplace_back(trim(parts[i]));
  return one;
}

std::optional<LinkId> find_nic(const topo::Graph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.links.size(); ++i) {
    const topo::Link& link = graph.links[i];
    if (link.a_nic >= 0 &&
        fmt::format("{}.nic{}", graph.nodes[link.a.index()].name, link.a_nic) == name)
      return LinkId{static_cast<int>(i)};
  }
  return std::nullopt;
}

std::optional<NodeId> find_node(const topo::Graph& graph, const std::string& name, bool server) {
  const auto node = topo::find_node(graph, name);
  if (node && (graph.nodes[node->index()].kind == topo::NodeKind::kServer) == server) return node;
  return std::nullopt;
}

// "cables A and B", "address of SERVER.nicN and SERVER.nicN"; consumes these words.
Result<diag::Culprit> parse_setting(const topo::Graph& graph, std::vector<std::string>& words) {
  const bool is_cabling = words[0] == "cables";
  if (!is_cabling && words[1] != "of")
    return wrong(words[0] + ": is of two NICs, like address of s0.nic0 and s4.nic0");
  if (!is_cabling) words.erase(std::ranges::find(words, "of"));
  if (words.size() < 5 || words[2] != "and")
    return wrong(words[0] + ": needs two names, with \"and\" between them");
  const auto find = [&](const std::string& name) {
    return is_cabling ? topo::find_link(graph, name) : find_nic(graph, name);
  };
  const auto one = find(words[1]);
  const auto other = find(words[3]);
  if (!one || !other || *one == *other)
    return wrong(words[1] + " and " + words[3] + ": are not two of this network");
  words.erase(words.begin(), words.begin() + 4);
  if (is_cabling) return diag::cabling_culprit(*one, *other);
  return diag::Culprit{.kind = diag::CulpritKind::kAddresses,
                       .link = *one,
                       .node = graph.links[other->index()].a,
                       .other = *other};
}

// Consumes the words of the culprit; the others describe the fault.
Result<diag::Culprit> parse_culprit(const topo::Graph& graph, std::vector<std::string>& words) {
  if (words[0] == "cables" || words[0] == "address") return parse_setting(graph, words);
  const std::string kind = words[0];
  const std::string name = words[1];
  const auto unknown = [&] { return wrong(kind + " " + name + ": is not in this network"); };
  words.erase(words.begin(), words.begin() + 2);
  if (kind == "nic") {
    const auto link = find_nic(graph, name);
    return link ? Result(diag::nic_culprit(graph, *link)) : unknown();
  }
  if (kind == "switch" || kind == "server") {
    const auto node = find_node(graph, name, kind == "server");
    if (!node) return unknown();
    return kind == "server" ? diag::server_culprit(*node) : diag::switch_culprit(*node);
  }
  if (kind != "link") return wrong(kind + ": is no link, nic, switch or server");
  const auto link = find_link(graph, name);
  if (!link) return unknown();
  if (!words.empty() && words[0] == "both") {
    words.erase(words.begin());
    return diag::both_directions_culprit(*link);
  }
  if (words.size() < 2 || words[0] != "from")
    return wrong("link " + name + ": needs \"both\" or \"from NODE\"");
  const topo::Link& cable = graph.links[link->index()];
  const bool forward = graph.nodes[cable.a.index()].name == words[1];
  if (!forward && graph.nodes[cable.b.index()].name != words[1])
    return wrong("link " + name + ": does not end at " + words[1]);
  words.erase(words.begin(), words.begin() + 2);
  return diag::link_culprit({*link, forward});
}

// Consumes "of large" or "of users" at the end.
std::optional<diag::PacketVariant> consume_variant(std::vector<std::string>& words) {
  if (words.size() < 2 || words[words.size() - 2] != "of") return std::nullopt;
  const bool is_large = words.back() == "large";
  if (!is_large && words.back() != "users") return std::nullopt;
  words.resize(words.size() - 2);
  return is_large ? diag::PacketVariant::kLarge : diag::PacketVariant::kUser;
}

bool same_culprits(std::vector<diag::Culprit> one, std::vector<diag::Culprit> two) {
  std::ranges::sort(one);
  std::ranges::sort(two);
  return one == two;
}

// Two faults alike on the two directions of a cable are one of the cable.
std::vector<diag::Culprit> culprits_of(const topo::Graph& graph,
                                       const std::vector<SimulatedFault>& faults) {
  std::vector<diag::Culprit> all;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const diag::Culprit& own = faults[i].culprit;
    const auto is_other_half = [&](const SimulatedFault& other) {
      return other.culprit.kind == diag::CulpritKind::kLink && own.kind == other.culprit.kind &&
             other.culprit.link == own.link && other.culprit.forward == own.backward &&
             own.forward != own.backward && other.loss == faults[i].loss && !other.some_flows &&
             other.only == faults[i].only && !faults[i].some_flows;
    };
    if (!std::ranges::any_of(faults, is_other_half)) {
      all.push_back(own);
    } else if (own.forward) {
      const bool is_nic = graph.links[own.link.index()].a_nic >= 0;
      all.push_back(is_nic ? diag::nic_culprit(graph, own.link)
                           : diag::both_directions_culprit(own.link));
    }
  }
  return all;
}

}  // namespace

Result<std::vector<Scenario>> parse_scenarios(std::string_view text, const std::string& file) {
  std::vector<Scenario> all;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::string_view trimmed = trim(line);
    if (trimmed.empty() || trimmed.front() == '#') continue;
    auto one = parse_line(trimmed);
    if (!one) return wrong(fmt::format("{}:{}: {}", file, number, one.error().message));
    all.push_back(std::move(*one));
  }
  return all;
}

Result<SimulatedFault> parse_fault(const topo::Graph& graph, std::string_view text) {
  std::vector<std::string> words = words_of(text);
  if (words.size() < 3) return wrong(printable(text, 60) + ": a fault says who, and what it does");
  REGATTA_TRY(culprit, parse_culprit(graph, words));
  SimulatedFault fault{.culprit = culprit};
  fault.only = consume_variant(words);
  if (diag::is_misconfiguration(culprit)) {
    const bool is_cabling = culprit.kind == diag::CulpritKind::kCabling;
    if (words == std::vector<std::string>{is_cabling ? "swapped" : "twice"}) return fault;
    return wrong(printable(text, 60) + ": must end with " +
                 (is_cabling ? "\"swapped\"" : "\"twice\""));
  }
  const bool is_server = culprit.kind == diag::CulpritKind::kServer;
  if (is_server && words == std::vector<std::string>{"dead"}) return fault;
  if (!is_server && words == std::vector<std::string>{"some-flows"}) {
    fault.some_flows = true;
    return fault;
  }
  if (is_server || words.size() != 2 || words[0] != "loss")
    return wrong(printable(text, 60) + ": must end with " +
                 (is_server ? "\"dead\""
                            : "\"loss SHARE\" or \"some-flows\", and \"of large\" or \"of users\" "
                              "behind it"));
  REGATTA_TRY(loss, parse_ratio(words[1]));
  if (!(loss > 0 && loss <= 1)) return wrong("loss " + words[1] + ": must be above 0, to 100%");
  fault.loss = loss;
  return fault;
}

std::string fault_text(const topo::Graph& graph, const SimulatedFault& fault) {
  const diag::Culprit& culprit = fault.culprit;
  std::string text;
  if (culprit.kind == diag::CulpritKind::kLink) {
    const topo::Link& link = graph.links[culprit.link.index()];
    text = "link " + link.name +
           (culprit.forward == culprit.backward
                ? " both"
                : " from " + graph.nodes[(culprit.forward ? link.a : link.b).index()].name);
  } else {
    text = to_string(graph, culprit);
  }
  if (culprit.kind == diag::CulpritKind::kCabling) return text + " swapped";
  if (culprit.kind == diag::CulpritKind::kAddresses)
    return "address" + text.substr(text.find(" of ")) + " twice";
  if (culprit.kind == diag::CulpritKind::kServer) return text + " dead";
  text += fault.some_flows ? " some-flows" : fmt::format(" loss {}%", fault.loss * 100);
  if (!fault.only) return text;
  return text + (*fault.only == diag::PacketVariant::kLarge ? " of large" : " of users");
}

std::vector<SimulatedFault> random_faults(const topo::Graph& graph, const Coverage& coverage,
                                          int count, std::mt19937_64& random) {
  const auto draw = [&](std::size_t below) { return static_cast<std::size_t>(random() % below); };
  std::set<std::uint32_t> unfit(coverage.missing.begin(), coverage.missing.end());
  for (const auto& [link, other] : coverage.hidden)
    unfit.insert(link);
  std::vector<SimulatedFault> faults;
  std::set<std::uint32_t> used;
  while (faults.size() < static_cast<std::size_t>(count)) {
    SimulatedFault fault;
    const auto kind = draw(10);  // 5: a direction of a link; else cable, NIC, switch, server
    const LinkId link{static_cast<int>(draw(graph.links.size()))};
    const topo::Link& cable = graph.links[link.index()];
    if (kind < 5) fault.culprit = diag::link_culprit({link, draw(2) == 0});
    if (kind == 5 && cable.a_nic < 0) fault.culprit = diag::both_directions_culprit(link);
    if ((kind == 6 || kind == 7) && cable.a_nic >= 0)
      fault.culprit = diag::nic_culprit(graph, link);
    if (kind == 8) fault.culprit = diag::switch_culprit(cable.b);
    if (kind == 9 && cable.a_nic >= 0) fault.culprit = diag::server_culprit(cable.a);
    if (fault.culprit.kind == diag::CulpritKind::kNone) continue;
    constexpr double kLosses[] = {0.01, 0.05, 1};
    if (kind != 9) fault.loss = kLosses[draw(3)];
    // Half of the flows of a direction of a link, or of a switch.
    fault.some_flows = (kind < 5 || kind == 8) && draw(6) == 0;
    if (fault.some_flows) fault.loss = 1;
    const auto links = diag::links_to_avoid(graph, fault.culprit);
    if (std::ranges::any_of(
            links, [&](std::uint32_t one) { return unfit.contains(one) || used.contains(one); }))
      continue;
    used.insert(links.begin(), links.end());
    faults.push_back(fault);
  }
  return faults;
}

SimulatedFault random_variant_fault(const topo::Graph& graph, const Coverage& coverage,
                                    std::mt19937_64& random) {
  for (;;) {
    SimulatedFault fault = random_faults(graph, coverage, 1, random)[0];
    if (fault.culprit.kind == diag::CulpritKind::kServer) continue;
    const bool is_large = random() % 2 == 0;
    if (is_large && fault.some_flows) continue;
    fault.loss = 1;
    fault.only = is_large ? diag::PacketVariant::kLarge : diag::PacketVariant::kUser;
    return fault;
  }
}

Outcome try_scenario(const topo::Graph& graph, const Matrix& matrix,
                     std::vector<SimulatedFault> faults, const SimulationOptions& options,
                     const Planned* planned) {
  constexpr Seconds kLimit{2};
  std::mt19937_64 random(options.seed);
  const Seconds start{2.5 + 0.1 * std::uniform_real_distribution<double>(0, 1)(random)};
  Outcome outcome;
  for (SimulatedFault& fault : faults)
    fault.at = start;
  outcome.truth = culprits_of(graph, faults);
  Simulation simulation(graph, matrix, faults, options);
  diag::Locator locator(graph, matrix.paths,
                        diag::options_for(options.period, planned != nullptr ? kDoubt : Seconds{}));
  std::optional<SimulatedTraces> traces;
  if (planned != nullptr) traces.emplace(graph, *planned, matrix);
  outcome.after.resize(outcome.truth.size(), Seconds{-1});
  while (simulation.now() < start + kLimit - options.period * options.periods_per_window) {
    simulate_window(simulation, locator);
    if (traces) traces->go_on(simulation, locator);
    const diag::FaultChanges changes =
        locate_with_settings(graph, faults, locator, simulation.now());
    for (const diag::FaultVerdict& verdict : changes.begun) {
      if (!diag::is_fault(verdict)) continue;
      outcome.blamed.push_back(verdict);
      for (std::size_t i = 0; i < outcome.truth.size(); ++i)
        if (verdict.culprit == outcome.truth[i]) outcome.after[i] = simulation.now() - start;
    }
  }
  std::vector<diag::Culprit> blamed;
  for (const diag::FaultVerdict& verdict : outcome.blamed)
    blamed.push_back(verdict.culprit);
  outcome.is_right = same_culprits(blamed, outcome.truth);
  std::vector<diag::RoundTrip> trips;
  for (std::uint32_t probe = 0; probe < matrix.probes.size(); ++probe)
    trips.push_back({matrix.paths.links(2 * probe), matrix.paths.links(2 * probe + 1),
                     simulation.since_fault()[probe].sent, simulation.since_fault()[probe].lost});
  outcome.vote = diag::vote_007(graph, trips);
  outcome.threshold = diag::pingmesh_threshold(graph, trips);
  return outcome;
}

}  // namespace regatta::probe
