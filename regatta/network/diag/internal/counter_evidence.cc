#include "regatta/network/diag/internal/counter_evidence.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "regatta/network/fabric/routes.h"

namespace regatta::diag {
namespace {

constexpr std::size_t kHeldMost = 36;  // readings of a port
constexpr Seconds kHeldApart{5};
constexpr Seconds kHeldFor{120};
constexpr Seconds kOneReading{1};  // lines that come together are of one
constexpr Seconds kRecentSpan{10};
constexpr double kSilentIntervals = 3;
constexpr Seconds kSilentLeast{15};
constexpr Seconds kSilentMost{300};
constexpr std::uint64_t kErrorsLeast = 3;  // beside a verdict
constexpr double kErrorsDue = 20;          // so many are expected, and none is counted
// Without a verdict: so many, of this share of the packets (the specified bit error rate of a cable
// gives less), in so many intervals (a cable that is plugged in gives one burst).
constexpr std::uint64_t kSuspectedLeast = 10;
constexpr double kSuspectedShare = 1e-6;
constexpr std::size_t kSuspectedIntervals = 3;
constexpr Seconds kSuspectedAgain{600};
constexpr Seconds kLook{1};

enum Kind : std::uint8_t { kInPackets, kInErrors, kInDrops, kOutErrors, kOutDrops };

// A port has the number of the directed link that leaves it.
PortNumber end_of(std::uint32_t link) {
  return link ^ 1U;
}
std::uint32_t link_into(PortNumber port) {
  return port ^ 1U;
}

}  // namespace

CounterEvidence::CounterEvidence(const topo::Graph& graph)
    : graph_(graph), ports_(2 * graph.links.size()) {}

Seconds CounterEvidence::Port::silent_after() const {
  return std::clamp(kSilentIntervals * interval, kSilentLeast, kSilentMost);
}

void CounterEvidence::add(const PortReading& reading) {
  if (reading.port >= ports_.size()) return;
  Port& port = ports_[reading.port];
  // Counts that rose during a silence, or while the clock was set back, have no time.
  const bool goes_back = !port.sums.empty() && reading.at < port.sums.back().at;
  if (goes_back || !is_fresh(reading.port, reading.at)) port = Port();
  const std::array<std::optional<std::uint64_t>, kKinds> now = {
      reading.in_packets, reading.in_errors, reading.in_drops, reading.out_errors,
      reading.out_drops};
  Sums sums = port.sums.empty() ? Sums() : port.sums.back();
  sums.at = reading.at;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    sums.is_known[kind] = now[kind].has_value();
    if (!now[kind]) continue;
    const auto before = std::exchange(port.raw[kind], now[kind]);
    if (!before || *now[kind] <= *before) continue;
    sums.counts[kind] += *now[kind] - *before;
    if (kind == kInErrors) erring_.insert(reading.port);
  }
  hold(port, sums);
  Node& node = nodes_[fabric::tail_of(graph_, reading.port)];
  node.last = reading.at;
  node.silent_after = port.silent_after();
}

// It holds the last one of readings that are close to each other.
void CounterEvidence::hold(Port& port, Sums sums) {
  std::vector<Sums>& held = port.sums;
  if (!held.empty() && sums.at - held.back().at >= kOneReading)
    port.interval = sums.at - held.back().at;
  if (held.size() >= 2 && held.back().at - held[held.size() - 2].at < kOneReading) held.pop_back();
  sums.after = held.empty() ? sums.at : held.back().at;
  held.push_back(sums);
  for (std::size_t i = 1; i + 1 < held.size() && sums.at - held[i].at > kRecentSpan;)
    if (held[i].at - held[i - 1].at < kHeldApart)
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  // A suspicion needs several intervals, however long they are.
  while (held.size() > kHeldMost ||
         (held.size() > kSuspectedIntervals + 1 && sums.at - held[1].at > kHeldFor))
    held.erase(held.begin());
}

bool CounterEvidence::is_fresh(PortNumber number, Seconds now) const {
  const Port& port = ports_[number];
  return !port.sums.empty() && now - port.sums.back().at <= port.silent_after();
}

// From the last reading at that time or before. Where that one is held no more, from the first one
// after it: what a port counted long before that time does not belong to it.
PortGrowth CounterEvidence::growth_since(PortNumber number, Seconds since) const {
  const std::vector<Sums>& sums = ports_[number].sums;
  const auto after = std::ranges::upper_bound(sums, since, {}, &Sums::at);
  const bool holds_before =
      after != sums.begin() && (after == sums.end() || after->after == std::prev(after)->at);
  const Sums& first = holds_before ? *std::prev(after) : *after;
  const Sums& last = sums.back();
  PortGrowth growth{.port = number, .span = last.at - first.at};
  const std::array<std::optional<std::uint64_t>*, kKinds> counts = {
      &growth.in_packets, &growth.in_errors, &growth.in_drops, &growth.out_errors,
      &growth.out_drops};
  for (std::size_t kind = 0; kind < kKinds; ++kind)
    if (first.is_known[kind] && last.is_known[kind])
      *counts[kind] = last.counts[kind] - first.counts[kind];
  return growth;
}

std::uint64_t CounterEvidence::errors_at(PortNumber port, Seconds since, Seconds now) const {
  return is_fresh(port, now) ? growth_since(port, since).in_errors.value_or(0) : 0;
}

// Errors at the end of the link, without as many as the switch at its beginning has received.
std::uint64_t CounterEvidence::own_errors(std::uint32_t link, Seconds since, Seconds now) const {
  const std::uint64_t errors = errors_at(end_of(link), since, now);
  if (errors == 0) return 0;
  const NodeId from = fabric::tail_of(graph_, link);
  std::uint64_t passed_on = 0;
  for (const LinkId cable : graph_.links_of[from.index()]) {
    const PortNumber port = fabric::number_of({cable, graph_.links[cable.index()].a == from});
    if (port != link) passed_on += errors_at(port, since, now);
  }
  return errors > passed_on ? errors - passed_on : 0;
}

// The same of the last seconds before the last reading, or since the one before.
std::uint64_t CounterEvidence::recent_errors(std::uint32_t link, Seconds now) const {
  const std::vector<Sums>& sums = ports_[end_of(link)].sums;
  return sums.empty() ? 0 : own_errors(link, sums.back().at - kRecentSpan, now);
}

std::vector<std::uint32_t> CounterEvidence::links_with_errors(Seconds now) const {
  std::vector<std::uint32_t> links;
  for (const PortNumber port : erring_)
    if (recent_errors(link_into(port), now) >= kErrorsLeast) links.push_back(link_into(port));
  std::ranges::sort(links);
  return links;
}

CounterFindings CounterEvidence::about(const Culprit& culprit, double loss_share, Seconds since,
                                       Seconds now) const {
  CounterFindings findings;
  const std::vector<std::uint32_t> links = links_to_avoid(graph_, culprit);
  const auto has_reading = [&](PortNumber port) {
    return is_fresh(port, now) && ports_[port].sums.back().at >= since;
  };
  std::set<PortNumber> ports;
  bool knows_all = true;
  std::uint64_t own = 0;
  double due = 0;
  for (const std::uint32_t link : links) {
    ports.insert({link, end_of(link)});
    if (!has_reading(end_of(link))) {
      knows_all = false;
      continue;
    }
    const PortGrowth growth = growth_since(end_of(link), since);
    knows_all = knows_all && growth.in_errors;
    findings.errors += growth.in_errors.value_or(0);
    own += own_errors(link, since, now);
    due += loss_share * static_cast<double>(growth.in_packets.value_or(0));
  }
  for (const PortNumber port : ports)
    if (has_reading(port)) findings.ports.push_back(growth_since(port, since));
  if (culprit.kind != CulpritKind::kLink && culprit.kind != CulpritKind::kNic) return findings;
  if (own >= kErrorsLeast) findings.opinion = CounterOpinion::kAgrees;
  if (findings.errors == 0 && knows_all && due >= kErrorsDue)
    findings.opinion = CounterOpinion::kDisagrees;
  return findings;
}

// Whether the port has counted errors in enough of the intervals of five seconds or more between
// readings; the last one may be shorter.
bool CounterEvidence::goes_on(PortNumber port) const {
  const std::vector<Sums>& sums = ports_[port].sums;
  std::size_t intervals = 0;
  const Sums* from = sums.data();
  for (const Sums& to : sums) {
    if (to.at - from->at < kHeldApart && &to != &sums.back()) continue;
    if (to.counts[kInErrors] > from->counts[kInErrors]) ++intervals;
    from = &to;
  }
  return intervals >= kSuspectedIntervals;
}

bool CounterEvidence::is_suspect(PortNumber port, Seconds now) const {
  const std::uint32_t link = link_into(port);
  const auto told = suspected_.find(link);
  if (told != suspected_.end() && now - told->second < kSuspectedAgain) return false;
  if (recent_errors(link, now) == 0 || !goes_on(port)) return false;
  const std::uint64_t errors = own_errors(link, now - kHeldFor, now);
  const auto packets = growth_since(port, now - kHeldFor).in_packets.value_or(0);
  return errors >= kSuspectedLeast &&
         static_cast<double>(errors) >= kSuspectedShare * static_cast<double>(packets);
}

std::optional<CounterSuspicion> CounterEvidence::consume_suspicion(
    std::span<const FaultVerdict> active, Seconds now) {
  if (now < next_look_ && next_look_ - now <= kLook) return std::nullopt;
  next_look_ = now + kLook;
  std::erase_if(erring_,
                [&](PortNumber port) { return errors_at(port, now - kHeldFor, now) == 0; });
  const auto crosses = [&](const Culprit& culprit, std::uint32_t link) {
    const auto links = links_to_avoid(graph_, culprit);
    return std::ranges::find(links, link) != links.end();
  };
  for (const PortNumber port : erring_) {
    const std::uint32_t link = link_into(port);
    if (!is_suspect(port, now)) continue;
    const bool is_explained = std::ranges::any_of(active, [&](const FaultVerdict& verdict) {
      return crosses(verdict.culprit, link) ||
             std::ranges::any_of(verdict.alternatives,
                                 [&](const Culprit& other) { return crosses(other, link); });
    });
    if (is_explained) continue;
    suspected_[link] = now;
    return CounterSuspicion{.culprit = link_culprit(fabric::directed_link(link)),
                            .growth = growth_since(port, now - kHeldFor)};
  }
  return std::nullopt;
}

std::vector<CounterSilence> CounterEvidence::consume_silences(Seconds now) {
  std::vector<CounterSilence> changes;
  for (auto& [id, node] : nodes_) {
    const bool is_stale = now - node.last > node.silent_after;
    if (is_stale == node.is_stale) continue;
    node.is_stale = is_stale;
    changes.push_back(
        {.node = id, .is_stale = is_stale, .silence = is_stale ? now - node.last : Seconds{0}});
  }
  return changes;
}

}  // namespace regatta::diag
