#include "regatta/network/probe/internal/simulation/simulation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"
#include "regatta/network/probe/prober.h"

namespace regatta::probe {
namespace {

constexpr double kOneWay = 20e-6;

// Directed links on which packets meet the fault, each path at most one of them.
std::vector<std::uint32_t> links_of(const topo::Graph& graph, const diag::Culprit& culprit) {
  std::vector<std::uint32_t> links = diag::links_to_avoid(graph, culprit);
  if (culprit.kind == diag::CulpritKind::kCabling)
    for (const LinkId cable : {culprit.link, culprit.other})
      for (const bool forward : {true, false})
        links.push_back(fabric::number_of({cable, forward}));
  if (culprit.kind != diag::CulpritKind::kSwitch) return links;
  std::erase_if(links,
                [&](std::uint32_t link) { return fabric::head_of(graph, link) != culprit.node; });
  return links;
}

// Whether a path meets the fault: at `links`, or as one between two NICs with one address.
bool is_affected(const diag::Culprit& culprit, const std::vector<std::uint32_t>& links,
                 std::span<const std::uint32_t> path) {
  if (culprit.kind != diag::CulpritKind::kAddresses)
    return std::ranges::any_of(
        path, [&](std::uint32_t link) { return std::ranges::find(links, link) != links.end(); });
  const LinkId from{static_cast<int>(path.front() / 2)};
  const LinkId to{static_cast<int>(path.back() / 2)};
  return std::minmax(from, to) == std::minmax(culprit.link, culprit.other);
}

}  // namespace

Noise quiet() {
  return {.pauses = {{.per_second = 2, .least = {0.0005}, .most = {0.004}}}, .overloads = {}};
}

Noise busy() {
  return {.pauses = {{.per_second = 8, .least = {0.014}, .most = {0.015}},
                     {.per_second = 1, .least = {0.03}, .most = {0.1}},
                     {.per_second = 0.1, .least = {0.1}, .most = {0.5}},
                     {.per_second = 0.02, .least = {0.5}, .most = {1.0}}},
          .overloads = {.per_second = 0.02, .least = {0.05}, .most = {0.3}, .loss = 0.3}};
}

Simulation::Simulation(const topo::Graph& graph, const Matrix& matrix,
                       std::vector<SimulatedFault> faults, const SimulationOptions& options)
    : matrix_(matrix),
      faults_(std::move(faults)),
      options_(options),
      random_(options.seed),
      trace_random_(options.seed + 77),
      variant_random_(options.seed + 154),
      effects_(matrix.paths.size()),
      since_fault_(matrix.probes.size()) {
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].kind != topo::NodeKind::kServer) break;
    servers_.emplace_back();
    servers_.back().random.seed(options.seed * 1'000'003 + node);
  }
  for (const Probe& probe : matrix.probes) {
    from_.push_back(graph.links[probe.from.index()].a.index());
    to_.push_back(graph.links[probe.to.index()].a.index());
  }
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const SimulatedFault& fault = faults_[i];
    first_fault_ = std::min(first_fault_, fault.at.value);
    if (fault.culprit.kind == diag::CulpritKind::kServer)
      servers_[fault.culprit.node.index()].dead_from = fault.at.value;
    const auto links = links_of(graph, fault.culprit);
    hit_.emplace_back(2 * graph.links.size());
    for (const std::uint32_t link : links)
      hit_.back()[link] = true;
    for (std::uint32_t path = 0; path < matrix.paths.size(); ++path) {
      if (!is_affected(fault.culprit, links, matrix.paths.links(path))) continue;
      double loss = fault.loss;
      if (fault.some_flows) {
        fabric::FiveTuple flow = matrix.probes[path / 2].flow;
        if (path % 2 == 1) flow = answer_to(flow);
        const auto seed = static_cast<std::uint32_t>(options.seed * 7919 + i);
        loss = fabric::ecmp_hash(flow, seed, fabric::HashPolicy::kLayer4) % 2 == 0 ? 1 : 0;
      }
      if (loss > 0) effects_[path].push_back({path, i, loss});
    }
  }
}

void Simulation::draw_pauses(Server& server, double until) {
  const auto draw = [&](double per_second, Seconds least, Seconds most, std::vector<Span>& spans) {
    if (per_second <= 0) return;
    std::poisson_distribution<int> count(per_second * (until - server.drawn_until));
    for (int i = count(server.random); i > 0; --i) {
      const double start = server.drawn_until + even_(server.random) * (until - server.drawn_until);
      spans.push_back({start, start + least.value + even_(server.random) * (most - least).value});
    }
  };
  for (const Pauses& pauses : options_.noise.pauses)
    draw(pauses.per_second, pauses.least, pauses.most, server.pauses);
  const Overloads& overloads = options_.noise.overloads;
  draw(overloads.per_second, overloads.least, overloads.most, server.overloads);
  for (auto* spans : {&server.pauses, &server.overloads}) {
    std::erase_if(*spans, [&](const Span& span) { return span.end < until - 30; });
    std::ranges::sort(*spans, {}, &Span::start);
    // Those that meet are one.
    std::vector<Span> joined;
    for (const Span& span : *spans) {
      if (!joined.empty() && span.start <= joined.back().end)
        joined.back().end = std::max(joined.back().end, span.end);
      else
        joined.push_back(span);
    }
    *spans = std::move(joined);
  }
  server.drawn_until = until;
}

double Simulation::awake(const Server& server, double time) const {
  for (const Span& pause : server.pauses)
    if (pause.start <= time && time < pause.end) return pause.end;
  return time;
}

bool Simulation::is_lost_inside(const Server& server, double time, std::mt19937_64& random) {
  if (time >= server.dead_from) return true;
  for (const Span& overload : server.overloads)
    if (overload.start <= time && time < overload.end)
      return even_(random) < options_.noise.overloads.loss;
  return false;
}

bool Simulation::is_lost_on(std::uint32_t path, double time,
                            std::optional<diag::PacketVariant> variant) {
  const auto is_hit = [&](const Effect& effect) {
    const SimulatedFault& fault = faults_[effect.fault];
    if (!fault.is_broken(Seconds{time}) || (fault.only && fault.only != variant)) return false;
    if (effect.loss >= 1) return true;
    return variant ? variant_chance(effect.loss) : chance(effect.loss);
  };
  return std::ranges::any_of(effects_[path], is_hit);
}

// A packet that ends at the router behind link `hop` of the path, or the router's answer.
bool Simulation::is_lost_to(std::uint32_t path, std::size_t hop, double time) {
  const auto links = matrix_.paths.links(path).first(hop + 1);
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (!faults_[i].is_broken(Seconds{time}) || faults_[i].only) continue;
    // One switch answers what ends there though it passes nothing on, the other is dead.
    const bool answers =
        faults_[i].culprit.kind == diag::CulpritKind::kSwitch && (options_.seed + i) % 2 == 0;
    for (const std::uint32_t link : links) {
      if (hit_[i][link] && !(answers && link == links.back())) {
        const auto its = std::ranges::find(effects_[path], i, &Effect::fault);
        if (its != effects_[path].end() && traced_chance(its->loss)) return true;
      }
      // The answer's own 5-tuple has no ports: whether the fault takes it is a matter of luck.
      if (hit_[i][link ^ 1U] && traced_chance(faults_[i].some_flows ? 0.5 : faults_[i].loss))
        return true;
    }
  }
  return false;
}

std::optional<Simulation::Answer> Simulation::trace(const TraceOrder& order) {
  const auto links = matrix_.paths.links(order.path);
  Server& server = servers_[order.path % 2 == 0 ? from_[order.path / 2] : to_[order.path / 2]];
  Answer answer{.at = now(), .trace = {.window = window_, .path = order.path, .hops = {}}};
  answer.trace.hops.resize(static_cast<std::size_t>(order.hops));
  constexpr double kStep = 0.01;
  constexpr double kLateMost = 0.05;
  for (int step = 0; step < order.hops * order.tries; ++step) {
    const double time = answer.at.value;
    if (time >= server.dead_from || awake(server, time) - time > kLateMost) return std::nullopt;
    const auto hop = static_cast<std::size_t>(step % order.hops);
    TraceHop& its = answer.trace.hops[hop];
    ++its.sent;
    const bool is_overloaded = std::ranges::any_of(
        server.overloads, [&](const Span& span) { return span.start <= time && time < span.end; });
    if (!is_lost_to(order.path, hop, time) &&
        !(is_overloaded && traced_chance(options_.noise.overloads.loss))) {
      ++its.answered;
      const topo::DirectedLink into = fabric::directed_link(links[hop]);
      its.router = topo::address_of(into.link, into.forward);
    }
    answer.at = answer.at + Seconds{kStep};
  }
  answer.at = answer.at + Seconds{0.1};
  return answer;
}

void Simulation::send(std::uint32_t probe, double due, Seen& seen) {
  Server& from = servers_[from_[probe]];
  Server& to = servers_[to_[probe]];
  const double sent = awake(from, due);
  const double period = options_.period.value;
  // A server that slept over a period sends only the last probe that was due.
  if (sent - due >= period || sent >= from.dead_from) return;
  ++seen.sent;
  const bool counts = sent >= first_fault_;
  since_fault_[probe].sent += counts ? 1 : 0;
  since_fault_[probe].lost += counts ? 1 : 0;
  if (is_lost_on(2 * probe, sent) || is_lost_inside(to, sent + kOneWay)) return;
  const double answered = awake(to, sent + kOneWay + even_(random_) * period);
  if (answered >= to.dead_from) return;
  seen.arrived.push_back(answered);
  if (is_lost_on(2 * probe + 1, answered) || is_lost_inside(from, answered + kOneWay)) return;
  seen.answered.push_back(awake(from, answered + kOneWay + even_(random_) * period));
  since_fault_[probe].lost -= counts ? 1 : 0;
}

diag::HostState Simulation::state(std::size_t server, double start, double written) {
  diag::HostState state;
  for (const Span& pause : servers_[server].pauses)
    if (pause.end > start && pause.start < written)
      state.worst_gap = std::max(state.worst_gap, Seconds{pause.end - pause.start});
  for (int packet = 0; packet < kControlsPerWindow; ++packet) {
    ++state.control_sent;
    state.control_lost += is_lost_inside(servers_[server], start) ? 1 : 0;
  }
  return state;
}

// Report of the server on the window: once when it is over, and again as more becomes known.
void Simulation::report(std::size_t server, const std::vector<Seen>& seen) {
  const double start = static_cast<double>(window_) * window_length();
  const double written = awake(servers_[server], start + window_length() + options_.grace.value);
  diag::ProbeReport report{.server = NodeId{static_cast<int>(server)}, .window = window_};
  report.host = state(server, start, written);
  std::set<double> later;  // when more was known
  const auto known_by = [&](double until, const std::vector<double>& times) {
    std::uint16_t known = 0;
    for (const double time : times) {
      known = static_cast<std::uint16_t>(known + (time <= until ? 1 : 0));
      if (time > written)
        later.insert(written + window_length() * std::ceil((time - written) / window_length()));
    }
    return known;
  };
  const auto fill = [&](double until) {
    report.sent.clear();
    report.arrived.clear();
    for (std::uint32_t probe = 0; probe < seen.size(); ++probe) {
      if (from_[probe] == server)
        report.sent.push_back({probe, seen[probe].sent, known_by(until, seen[probe].answered)});
      if (to_[probe] == server)
        report.arrived.push_back({probe, known_by(until, seen[probe].arrived)});
    }
  };
  const double dead_from = servers_[server].dead_from;
  fill(written);
  if (written < dead_from) written_.emplace(written, report);
  const std::set<double> again = later;
  for (const double time : again) {
    const double awake_at = awake(servers_[server], time);
    if (awake_at >= dead_from) return;
    fill(time);
    written_.emplace(awake_at, report);
  }
}

// One packet of each probe in the cycle that ends now, at a time of its own; reported once when it
// is over, and again as more becomes known.
void Simulation::send_variant(diag::PacketVariant variant, double start) {
  constexpr double kNever = 1e300;
  const double length = window_length() * diag::kWindowsPerCycle;
  struct Fate {
    bool was_sent = false;
    double arrived = kNever;
    double answered = kNever;
  };
  std::vector<Fate> fates(from_.size());
  for (std::uint32_t probe = 0; probe < from_.size(); ++probe) {
    Server& from = servers_[from_[probe]];
    Server& to = servers_[to_[probe]];
    const double due = start + even_(variant_random_) * (length - options_.period.value);
    const double sent = awake(from, due);
    if (sent - due >= options_.period.value || sent >= from.dead_from) continue;
    fates[probe].was_sent = true;
    const double arrived = awake(to, sent + kOneWay);
    if (arrived >= to.dead_from || is_lost_on(2 * probe, sent, variant) ||
        is_lost_inside(to, sent + kOneWay, variant_random_))
      continue;
    fates[probe].arrived = arrived;
    if (is_lost_on(2 * probe + 1, arrived, variant) ||
        is_lost_inside(from, arrived + kOneWay, variant_random_))
      continue;
    fates[probe].answered = awake(from, arrived + kOneWay);
  }
  for (std::size_t server = 0; server < servers_.size(); ++server) {
    const double written = awake(servers_[server], start + length + options_.grace.value);
    std::set<double> times = {written};
    const auto report_again = [&](double time) {
      if (time > written && time < kNever)
        times.insert(written + window_length() * std::ceil((time - written) / window_length()));
    };
    for (std::uint32_t probe = 0; probe < fates.size(); ++probe) {
      if (from_[probe] == server) report_again(fates[probe].answered);
      if (to_[probe] == server) report_again(fates[probe].arrived);
    }
    for (const double time : times) {
      if (time >= servers_[server].dead_from) break;
      diag::VariantReport report{.server = NodeId{static_cast<int>(server)},
                                 .variant = variant,
                                 .cycle = window_ / diag::kWindowsPerCycle - 1};
      const auto count = [](bool is_so) { return static_cast<std::uint16_t>(is_so ? 1 : 0); };
      for (std::uint32_t probe = 0; probe < fates.size(); ++probe) {
        const Fate& fate = fates[probe];
        if (from_[probe] == server)
          report.sent.push_back({probe, count(fate.was_sent), count(fate.answered <= time)});
        if (to_[probe] == server) report.arrived.push_back({probe, count(fate.arrived <= time)});
      }
      written_variants_.emplace(awake(servers_[server], time), std::move(report));
    }
  }
}

void Simulation::send_variants() {
  const double start = static_cast<double>(window_ - diag::kWindowsPerCycle) * window_length();
  for (const auto variant : {diag::PacketVariant::kLarge, diag::PacketVariant::kUser})
    send_variant(variant, start);
}

std::vector<diag::VariantReport> Simulation::consume_variant_reports() {
  std::vector<diag::VariantReport> reports;
  const auto end = written_variants_.upper_bound(now().value);
  for (auto at = written_variants_.begin(); at != end; ++at)
    reports.push_back(std::move(at->second));
  written_variants_.erase(written_variants_.begin(), end);
  return reports;
}

std::vector<diag::ProbeReport> Simulation::next_window() {
  const double start = static_cast<double>(window_) * window_length();
  for (Server& server : servers_)
    if (server.drawn_until < start + 10) draw_pauses(server, server.drawn_until + 20);
  std::vector<Seen> seen(matrix_.probes.size());
  for (int i = 0; i < options_.periods_per_window; ++i)
    for (std::uint32_t probe = 0; probe < seen.size(); ++probe)
      send(probe, start + options_.period.value * static_cast<double>(i), seen[probe]);
  for (std::size_t server = 0; server < servers_.size(); ++server)
    report(server, seen);
  ++window_;
  if (window_ % diag::kWindowsPerCycle == 0) send_variants();
  std::vector<diag::ProbeReport> reports;
  const auto end = written_.upper_bound(now().value);
  for (auto at = written_.begin(); at != end; ++at)
    reports.push_back(std::move(at->second));
  written_.erase(written_.begin(), end);
  return reports;
}

void simulate_window(Simulation& simulation, diag::Locator& locator) {
  for (const diag::ProbeReport& report : simulation.next_window())
    locator.add(report);
  for (const diag::VariantReport& report : simulation.consume_variant_reports())
    locator.add(report);
}

}  // namespace regatta::probe
