#include "regatta/app/cli/internal/probe_evidence.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "regatta/base/os/clock.h"
#include "regatta/network/probe/evidence.h"

namespace regatta::cli {
namespace {

// After a verdict: the second count of connections, a second after the first, is there by then.
constexpr Seconds kGathered{1.5};

}  // namespace

void ProbeEvidence::request_carriers(NodeId server, probe::ReporterListener& listener) {
  listener.send(server, order_line(probe::CarriersOrder()));
  evidence_collector_.add_reporter(server);
}

Status ProbeEvidence::accept(NodeId server, std::string_view line, probe::Collector& collector) {
  REGATTA_TRY(evidence, probe::parse_evidence(line));
  const Seconds now = os::system_now();
  std::vector<diag::PassiveCount> passed;
  if (const auto* trace = std::get_if<probe::Trace>(&evidence)) {
    REGATTA_TRY(counts, evidence_collector_.accept(server, *trace, now));
    passed = std::move(counts);
  } else if (const auto* flows = std::get_if<probe::FlowCounts>(&evidence)) {
    REGATTA_TRY(counts, evidence_collector_.accept(server, *flows, now));
    passed = std::move(counts);
  } else if (const auto* nic = std::get_if<probe::NicCarrier>(&evidence)) {
    REGATTA_TRY(event, evidence_collector_.accept(server, *nic));
    collector.add(event);
  } else if (const auto* addresses = std::get_if<probe::InterfaceAddresses>(&evidence)) {
    collector.add(diag::ServerAddresses{.server = server, .interfaces = addresses->interfaces});
  }
  for (const diag::PassiveCount& one : passed)
    collector.add(one);
  return {};
}

void ProbeEvidence::update(const diag::FaultChanges& news, probe::Collector& collector,
                           probe::ReporterListener& listener, report::ProbeEventFormat& format,
                           Seconds since_begin) {
  const Seconds now = os::system_now();
  for (const probe::EvidenceRequest& one : evidence_collector_.due_requests(
           collector.lossy(), collector.standing(), collector.doubted(), now))
    if (!listener.send(one.server, order_line(one.order))) evidence_collector_.postpone(one);
  // A fault that is found again waits again: evidence collected meanwhile holds for both.
  for (const diag::FaultVerdict& over : news.over)
    std::erase_if(pending_,
                  [&](const PendingVerdict& one) { return one.verdict.culprit == over.culprit; });
  for (const diag::FaultVerdict& one : news.begun)
    if (is_fault(one)) pending_.push_back({one, now + kGathered});
  for (const PendingVerdict& one : pending_) {
    if (now < one.tell_at) continue;
    const auto& standing = collector.standing();
    const auto now_known =
        std::ranges::find(standing, one.verdict.culprit, &diag::FaultVerdict::culprit);
    const probe::CollectedEvidence gathered =
        evidence_collector_.about(one.verdict.culprit, one.verdict.since);
    if (now_known == standing.end() || !(gathered.has_traces() || gathered.has_connections()))
      continue;
    const auto [told, is_first] = told_.try_emplace(one.verdict.culprit, gathered);
    if (is_first || std::exchange(told->second, gathered) != gathered)
      print_now(format.evidence(one.verdict, *now_known, gathered, since_begin));
  }
  std::erase_if(pending_, [&](const PendingVerdict& one) { return now >= one.tell_at; });
  report_paths(format, since_begin);
  if (const auto suspicion = evidence_collector_.consume_suspicion(now))
    print_now(format.suspicion(*suspicion, since_begin));
  if (auto unknown = evidence_collector_.consume_unknown_paths())
    collector.leave_out(std::move(*unknown));
}

// Prints paths that differ from the plan, and after the first round their number; then measured
// paths replace planned ones.
void ProbeEvidence::report_paths(report::ProbeEventFormat& format, Seconds since_begin) {
  const auto elsewhere = evidence_collector_.consume_divergent_paths();
  if (!elsewhere.empty()) print_now(format.divergent_paths(elsewhere, since_begin));
  if (!evidence_collector_.is_discovery_complete()) return;
  if (!std::exchange(is_surveyed_, true))
    print_now(format.survey(evidence_collector_, since_begin));
  auto measured = evidence_collector_.consume_measured_paths();
  if (!measured) return;
  matrix_.paths = std::move(*measured);
  print_now(format.remapped(evidence_collector_, since_begin));
}

}  // namespace regatta::cli
