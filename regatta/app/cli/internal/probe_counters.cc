#include "regatta/app/cli/internal/probe_counters.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/app/cli/internal/print_now.h"
#include "regatta/base/os/clock.h"

namespace regatta::cli {
namespace {

constexpr Seconds kUpdateAgain{0.3};
constexpr Seconds kFirstLine{30};  // until it is said that there is none

}  // namespace

Result<ProbeCounters> ProbeCounters::open(const std::string& path, const topo::Graph& graph) {
  auto lines = FollowedLines::open(path, link_rates::kSwitchCountersLineMost);
  if (!lines) return Error{lines.error().code, "--counters " + lines.error().message};
  return ProbeCounters(std::move(*lines), graph);
}

Status ProbeCounters::read(probe::Collector& collector) {
  const Seconds now = os::system_now();
  REGATTA_TRY_DO(
      lines_.read([&](std::string_view line) { stream_.add(line, now); }, os::monotonic_now()));
  const link_rates::SwitchStreamNews news = stream_.consume_news();
  for (const diag::PortReading& reading : news.readings)
    collector.add(reading);
  for (const diag::HeardPort& port : news.heard)
    collector.add(port);
  for (const diag::CarrierEvent& event : news.carriers)
    collector.add(event);
  has_readings_ = has_readings_ || !news.readings.empty();
  return {};
}

void ProbeCounters::update(const diag::FaultChanges& news, probe::Collector& collector,
                           const report::ProbeEventFormat& format, Seconds since_begin) {
  for (const diag::FaultVerdict& over : news.over)
    told_.erase(over.culprit);
  if (since_begin < next_look_) return;
  next_look_ = since_begin + kUpdateAgain;
  report_stream(collector, format, since_begin);
  if (std::exchange(has_readings_, false)) report_findings(collector, format, since_begin);
  if (const auto suspicion =
          collector.counters().consume_suspicion(collector.standing(), os::system_now()))
    print_now(format.suspicion(*suspicion, since_begin));
}

void ProbeCounters::report_stream(probe::Collector& collector,
                                  const report::ProbeEventFormat& format, Seconds since_begin) {
  if (lines_.leaves_out_lines() && !std::exchange(has_told_beginning_, true))
    print_now(format.counters_left_out(
        lines_.name() + ": the lines that it had at the start are left out, because their age is "
                        "not known; new lines count, and regatta rates counters reads whole files",
        since_begin));
  for (const std::string& problem : stream_.consume_problems())
    print_now(format.counters_left_out(problem, since_begin));
  for (const diag::CounterSilence& one : collector.counters().consume_silences(os::system_now()))
    print_now(format.counter_silence(one, since_begin));
  if (lines_.is_over() && !std::exchange(has_told_end_, true))
    print_now(format.counters_left_out(
        lines_.name() + ": has ended; start the collector again to go on", since_begin));
  if (since_begin >= kFirstLine && stream_.lines() == 0 && !std::exchange(has_told_silence_, true))
    print_now(format.counters_left_out(fmt::format("{}: nothing has come for {}; see its collector",
                                                   lines_.name(), format_seconds(since_begin)),
                                       since_begin));
}

void ProbeCounters::report_findings(probe::Collector& collector,
                                    const report::ProbeEventFormat& format, Seconds since_begin) {
  const diag::CounterEvidence& counters = collector.counters();
  const Seconds now = os::system_now();
  for (const diag::FaultVerdict& verdict : collector.standing()) {
    const auto about = [&](const diag::Culprit& culprit) {
      return counters.about(culprit, verdict.loss_share, verdict.since, now);
    };
    const diag::CounterFindings findings = about(verdict.culprit);
    if (findings.ports.empty()) continue;
    std::vector<diag::Culprit> others;
    for (const diag::Culprit& other : verdict.alternatives)
      if (other.link != verdict.culprit.link &&
          about(other).opinion == diag::CounterOpinion::kAgrees)
        others.push_back(other);
    const auto [known, is_first] = told_.try_emplace(verdict.culprit);
    Told& told = known->second;
    // Alternatives come and go.
    const bool is_news =
        is_first || findings.opinion != told.opinion || others.size() > told.others_with_errors;
    told = {findings.opinion, std::max(others.size(), told.others_with_errors)};
    if (is_news) print_now(format.counted(verdict, findings, others, since_begin));
  }
}

}  // namespace regatta::cli
