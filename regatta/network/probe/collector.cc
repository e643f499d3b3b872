#include "regatta/network/probe/collector.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/evidence_collector.h"

namespace regatta::probe {
namespace {

constexpr diag::Window kSettles = 10;  // windows after a server, or the last of all, began
constexpr std::size_t kAgain = 128;    // windows that may be told again
constexpr Seconds kAheadMost{2};       // of a server's clock

diag::Window window_at(Seconds time, Seconds window) {
  return static_cast<diag::Window>(std::floor(time / window));
}

diag::LocatorOptions locator_options(Seconds period, bool is_healed) {
  diag::LocatorOptions options = diag::options_for(period, kDoubt);
  options.is_healed = is_healed;
  return options;
}

}  // namespace

Collector::Collector(const topo::Graph& graph, const Matrix& matrix, Seconds period, bool is_healed)
    : graph_(graph),
      matrix_(matrix),
      window_(period * periods_),
      locator_(graph, matrix.paths, locator_options(period, is_healed)) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind == topo::NodeKind::kServer)
      servers_.push_back({.part = part_of(graph_, matrix_, NodeId{static_cast<int>(i)})});
  pairs_.resize(servers_.size() * servers_.size());
  counted_.resize(matrix.probes.size());
}

void Collector::begin(Seconds now) {
  counts_from_ = window_at(now, window_) + kSettles;
}

std::size_t Collector::longest_line(NodeId server) const {
  // Head; " s PROBE:SENT:ANSWERED" and " a PROBE:ARRIVED" of all, or their latencies.
  constexpr std::size_t kHead = 160;
  constexpr std::size_t kEach = 96;
  const ServerPart& part = servers_[server.index()].part;
  return std::max(kLongestEvidence, kHead + kEach * (part.sends.size() + part.answers.size()));
}

PairSum& Collector::pair_of(const Probe& probe) {
  return pairs_[graph_.links[probe.from.index()].a.index() * servers_.size() +
                graph_.links[probe.to.index()].a.index()];
}

void Collector::count(const diag::ProbeReport& report) {
  for (const diag::SentCount& one : report.sent) {
    std::vector<Counted>& windows = counted_[one.probe];
    if (windows.empty()) windows.resize(kAgain);
    Counted& known = windows[static_cast<std::size_t>(report.window) % kAgain];
    if (known.window > report.window) continue;
    if (known.window < report.window) known = {.window = report.window};
    PairSum& sum = pair_of(matrix_.probes[one.probe]);
    sum.sent += static_cast<std::uint64_t>(one.sent - known.sent);
    sum.lost += static_cast<std::uint64_t>(one.sent - one.answered);
    sum.lost -= static_cast<std::uint64_t>(known.sent - known.answered);
    known.sent = one.sent;
    known.answered = one.answered;
  }
}

void Collector::count(const std::vector<Latency>& latencies) {
  for (const Latency& one : latencies) {
    if (one.count == 0) continue;
    PairSum& sum = pair_of(matrix_.probes[one.probe]);
    sum.least_us = sum.answers == 0 ? one.least_us : std::min(sum.least_us, one.least_us);
    sum.most_us = std::max(sum.most_us, one.most_us);
    sum.total_us += one.mean_us * one.count;
    sum.answers += one.count;
  }
}

Status Collector::accept(NodeId node, std::string_view text, Seconds now) {
  Server& server = servers_[node.index()];
  REGATTA_TRY(line, parse_line(text, server.part, periods_));
  const bool has_begun = counts_from_ >= 0;
  if (const auto* latencies = std::get_if<std::vector<Latency>>(&line)) {
    if (has_begun && server.counts_from >= 0) count(*latencies);
    return {};
  }
  const auto* const report = std::get_if<diag::ProbeReport>(&line);
  const auto* const variant = std::get_if<diag::VariantReport>(&line);
  // As numbers with a fraction: no product overflows.
  const auto window = report != nullptr
                          ? static_cast<double>(report->window)
                          : static_cast<double>(variant->cycle) * diag::kWindowsPerCycle;
  if (window * window_.value > (now + kAheadMost).value + window_.value)
    return Error{Code::kInvalidInput, "server " + graph_.nodes[node.index()].name +
                                          ": tells of what is yet to come; keep the clocks of all "
                                          "servers together by NTP or PTP"};
  if (variant != nullptr) {
    const diag::Window first = std::max(server.counts_from, counts_from_);
    if (has_begun && server.counts_from >= 0 && variant->cycle * diag::kWindowsPerCycle >= first)
      locator_.add(*variant);
    return {};
  }
  if (server.counts_from < 0) server.counts_from = has_begun ? report->window + kSettles : 0;
  if (!has_begun || report->window < std::max(server.counts_from, counts_from_)) return {};
  count(*report);
  locator_.add(*report);
  return {};
}

std::uint64_t Collector::probes_sent() const {
  return std::accumulate(pairs_.begin(), pairs_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const PairSum& pair) { return sum + pair.sent; });
}

}  // namespace regatta::probe
