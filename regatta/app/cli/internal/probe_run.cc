#include "regatta/app/cli/internal/probe_run.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/app/cli/internal/healer_reporter.h"
#include "regatta/app/cli/internal/pluralized.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/probe_counters.h"
#include "regatta/app/cli/internal/probe_evidence.h"
#include "regatta/app/cli/internal/probe_lab.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/base/os/clock.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/handshake.h"
#include "regatta/network/probe/matrix.h"
#include "regatta/network/probe/reporter_listener.h"

namespace regatta::cli {
namespace {

constexpr Seconds kLook{0.01};
constexpr Seconds kBegins{20};   // until all probers of a lab report
constexpr Seconds kProgress{1};  // between two lines about who reports

Result<probe::ReporterListener> open_listener(const ProbeOptions& options,
                                              const ProbeTarget& target,
                                              const probe::Matrix& matrix, Seconds period,
                                              const probe::Collector& collector) {
  probe::ExpectedReporters expected{
      .servers = {}, .period = period, .plan = plan_number(target.graph, matrix), .token = {}};
  std::vector<std::size_t> longest;
  for (std::size_t i = 0; i < collector.servers(); ++i) {
    expected.servers.push_back(target.graph.nodes[i].name);
    longest.push_back(collector.longest_line(NodeId{static_cast<int>(i)}));
  }
  REGATTA_TRY(token, probe::token_of_environment());
  expected.token = token;
  const std::string at = target.lab ? "unix:" + target.lab->folder + "/probe.sock" : options.listen;
  auto listener = probe::ReporterListener::open(at, std::move(expected), std::move(longest));
  if (!listener && target.lab && listener.error().code == Code::kConflict)
    return Error{Code::kConflict,
                 "lab " + target.name + ": another regatta probe is at work; end it first"};
  if (!listener && !target.lab)
    return Error{listener.error().code, "--listen " + listener.error().message};
  return listener;
}

Result<std::optional<HealerReporter>> open_healer(const ProbeOptions& options,
                                                  const ProbeTarget& target) {
  if (!options.has_healer()) return std::optional<HealerReporter>();
  std::string path = options.heal_socket;
  if (path.empty() && target.lab) path = target.lab->folder + "/heal.sock";
  if (path.empty())
    return Error{Code::kInvalidInput,
                 "--heal: name the healer's socket with --heal-socket, as regatta heal --socket "
                 "has it"};
  REGATTA_TRY(opened, HealerReporter::open(path, target.graph));
  return std::optional<HealerReporter>(std::move(opened));
}

// One run of the command.
class ProbeRun {
 public:
  ProbeRun(const ProbeTarget& target, probe::Matrix& matrix, const ProbeOptions& options,
           ProbeTimes times)
      : target_(target),
        options_(options),
        times_(times),
        format_(target.graph, matrix,
                {.is_json = options.json, .lists_overlaps = options.lists_overlaps}),
        collector_(target.graph, matrix, times.period, options.has_healer()),
        roll_(collector_.servers(), std::max(Seconds{2}, 15 * times.period)),
        matrix_(matrix),
        gathers_(target.graph, target.routes, target.seeds, matrix) {}

  Status probe() {
    if (!options_.counters.empty()) {
      REGATTA_TRY(counters, ProbeCounters::open(options_.counters, target_.graph));
      counters_.emplace(std::move(counters));
    }
    REGATTA_TRY(healer, open_healer(options_, target_));
    if (healer && !healer->is_connected())
      fmt::print(stderr, "regatta: {}", report::healer_awaited_text(healer->path()));
    REGATTA_TRY(listener, open_listener(options_, target_, matrix_, times_.period, collector_));
    print_now(format_.coverage(probe::cover(target_.graph, matrix_)));
    LabProbers probers;  // end before the listener is shut
    if (target_.lab) {
      REGATTA_TRY_DO(
          probers.start(*target_.lab, target_.graph, matrix_, listener.address(), options_.period));
    } else {
      print_now(format_.listening(listener.address()));
    }
    REGATTA_TRY_DO(wait_until_begun(listener, probers));
    collector_.begin(os::system_now());
    has_begun_ = true;
    begin_ = os::monotonic_now();
    while (!stop_ && (times_.duration.value <= 0 || since_begin() < times_.duration)) {
      REGATTA_TRY_DO(gather(listener));
      diag::FaultChanges news = collector_.locate(os::system_now());
      if (target_.lab) REGATTA_TRY_DO(cabling_.check(*target_.lab, collector_, news));
      print_now(format_.faults(news, since_begin()));
      faults_ += static_cast<std::size_t>(std::ranges::count_if(news.begun, diag::is_fault));
      gathers_.update(news, collector_, listener, format_, since_begin());
      if (counters_) counters_->update(news, collector_, format_, since_begin());
      if (healer) {
        const std::string note = healer->report(news, collector_, os::monotonic_now());
        if (!note.empty()) fmt::print(stderr, "regatta: {}", note);
      }
      if (!target_.lab) continue;
      if (probers.ended().size() == probers.count())
        return Error{Code::kUnavailable,
                     "all probers have ended; the lab is down, or see what they printed"};
      for (const std::string& server : probers.restart_ended(os::monotonic_now()))
        print_now(format_.restarted(server, since_begin()));
    }
    print_now(format_.pairs(collector_));
    report::ProbeEventFormat::Totals totals{.probes = collector_.probes_sent(),
                                            .faults = faults_,
                                            .restarts = probers.restarts(),
                                            .time = since_begin(),
                                            .counters = {}};
    if (counters_) totals.counters = {counters_->stream().lines(), counters_->stream().left_out()};
    // By the paths that were measured meanwhile.
    print_now(format_.summary(probe::cover(target_.graph, matrix_), totals));
    return {};
  }

 private:
  Seconds since_begin() const { return os::monotonic_now() - begin_; }

  Status accept(NodeId server, std::string_view line) {
    REGATTA_TRY_DO(probe::is_evidence(line) ? gathers_.accept(server, line, collector_)
                                            : collector_.accept(server, line, os::system_now()));
    roll_.add_report(server, os::monotonic_now());
    return {};
  }

  Status gather(probe::ReporterListener& listener) {
    if (target_.lab) REGATTA_TRY_DO(carriers_.sample(*target_.lab, collector_));
    if (counters_) REGATTA_TRY_DO(counters_->read(collector_));
    Status status = listener.wait(
        kLook, [this](NodeId server, std::string_view line) { return accept(server, line); });
    if (!status) return status;
    for (const probe::RefusedReporter& one : listener.consume_refusals())
      print_now(format_.refusal(one, since_begin()));
    for (const NodeId server : listener.consume_arrivals())
      gathers_.request_carriers(server, listener);
    for (const probe::ReporterChange& one : roll_.update(os::monotonic_now()))
      if (has_begun_) print_now(format_.reporter_change(one, roll_, since_begin()));
    return {};
  }

  Status wait_until_begun(probe::ReporterListener& listener, LabProbers& probers) {
    begin_ = os::monotonic_now();
    const Seconds wait = target_.lab ? kBegins : times_.wait;
    Seconds told;
    std::size_t told_count = roll_.servers();
    while (!stop_ && !roll_.missing().empty()) {
      REGATTA_TRY_DO(gather(listener));
      if (roll_.reporting() != told_count && since_begin() - told >= kProgress) {
        print_now(format_.reporting(roll_));
        told = since_begin();
        told_count = roll_.reporting();
      }
      const auto ended = probers.ended();
      if (!ended.empty()) return silent(ended);
      if (since_begin() < wait) continue;
      if (target_.lab) return silent(names(roll_.missing()));
      // Two can measure each other; who waits without an end waits for them.
      if (roll_.reporting() >= 2) break;
      if (times_.duration.value > 0)
        return Error{Code::kUnavailable,
                     fmt::format("{} of {} servers report; start regatta-prober CLUSTER --server "
                                 "NAME --collector HOST:PORT on each",
                                 roll_.reporting(), roll_.servers())};
    }
    print_now(format_.reporting(roll_));
    return {};
  }

  std::vector<std::string> names(const std::vector<NodeId>& nodes) const {
    std::vector<std::string> all;
    all.reserve(nodes.size());
    for (const NodeId node : nodes)
      all.push_back(target_.graph.nodes[node.index()].name);
    return all;
  }
  static Error silent(const std::vector<std::string>& servers) {
    return {Code::kUnavailable,
            "prober of " + first_of(servers) + ": tells nothing; see what it printed"};
  }

  const ProbeTarget& target_;
  const ProbeOptions& options_;
  const ProbeTimes times_;
  const std::atomic<bool>& stop_ = watch_stop_signals();
  report::ProbeEventFormat format_;
  probe::Collector collector_;
  probe::ReporterStatus roll_;
  LabCarriers carriers_;
  LabCabling cabling_;
  std::optional<ProbeCounters> counters_;
  probe::Matrix& matrix_;
  ProbeEvidence gathers_;
  Seconds begin_;
  std::size_t faults_ = 0;  // that have begun
  bool has_begun_ = false;
};

}  // namespace

Status run_probe(const ProbeOptions& options) {
  REGATTA_TRY(times, parse_times(options));
  REGATTA_TRY(target, find_target(options));
  const auto transport =
      options.transport == "rdma" ? probe::Transport::kRdma : probe::Transport::kUdp;
  probe::Matrix matrix =
      probe::plan_matrix(target.graph, target.routes, target.seeds, {.transport = transport});
  if (matrix.probes.empty())
    return Error{Code::kInvalidInput,
                 "cluster " + target.name + ": has no two NICs on one rail to probe between"};
  return ProbeRun(target, matrix, options, times).probe();
}

}  // namespace regatta::cli
