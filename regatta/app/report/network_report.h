// report/network_report.h: probes, verdicts, rates of links, traffic and labs: text for people,
// JSON for programs. Texts end with a newline.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/diag/traffic_analysis.h"
#include "regatta/network/lab/lab.h"
#include "regatta/network/link_rates/counter_verdict.h"
#include "regatta/network/link_rates/port_discovery.h"
#include "regatta/network/link_rates/rate_plan.h"
#include "regatta/network/link_rates/rate_verdict.h"
#include "regatta/network/link_rates/switch_counters.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/evidence_collector.h"
#include "regatta/network/probe/matrix.h"
#include "regatta/network/probe/reporter_listener.h"

namespace regatta::report {

// A running lab in the list of `regatta lab ls`.
struct RunningLab {
  std::string name;
  std::size_t servers = 0;
  std::size_t switches = 0;
  std::size_t faults = 0;  // injected into links
  Seconds age;
};
std::string lab_list_text(const std::vector<RunningLab>& labs);
nlohmann::json lab_list_json(const std::vector<RunningLab>& labs);
// `regatta lab up`: a lab that came up.
std::string lab_up_text(const lab::LabInfo& lab);
// `regatta lab down`: labs that were ended; a line for each.
std::string lab_down_text(const std::string& name);
nlohmann::json lab_down_json(const std::vector<std::string>& names);
// `regatta run`: the lab that it trains in.
std::string lab_speed_text(const lab::LabInfo& lab);

// `regatta lab fault`: a fault that was injected, or cleared.
struct LabFaultChange {
  std::string lab;
  std::string kind;    // the command's last word: "down", "slow", "clear"
  std::string target;  // link or server; empty: all
  std::string amount;  // as the user wrote it; empty: the kind has none
};
std::string lab_fault_text(const LabFaultChange& change);
nlohmann::json lab_fault_json(const LabFaultChange& change);

// `regatta lab status`: servers, links and processes of a lab.
std::string lab_status_text(const lab::LabInfo& lab, const std::vector<lab::LinkState>& links,
                            const std::vector<lab::LabProcess>& processes);
nlohmann::json lab_status_json(const lab::LabInfo& lab, const std::vector<lab::LinkState>& links,
                               const std::vector<lab::LabProcess>& processes);

// An event of `regatta probe` or `regatta heal`, behind its time since the start.
std::string timed_line(Seconds at, const std::string& event);
// `regatta probe --heal`: no healer listens at `socket` yet, one does now, is lost, or back.
std::string healer_awaited_text(const std::string& socket);
std::string healer_found_text(const std::string& socket);
std::string healer_lost_text(const std::string& socket);
std::string healer_back_text(const std::string& socket);

// `regatta traffic`: analyzed traffic (docs/formats/traffic.md); pages.h has its page.
std::string traffic_text(const diag::TrafficAnalysis& analysis);
nlohmann::json traffic_json(const diag::TrafficAnalysis& analysis);
// The rates by pair of ranks in the intervals from `since`, a time after the start of `record`.
nlohmann::json traffic_interval_json(const diag::TrafficRecord& record, Seconds since);

// `regatta heal`: the fabric that it heals and the socket of its reports and subscribers.
std::string healing_text(const topo::Graph& graph, const std::string& socket, bool is_dry_run);
nlohmann::json healing_json(const topo::Graph& graph, const std::string& socket, bool is_dry_run,
                            Seconds at);

// The events of `regatta probe`: each function returns one event as lines of text, or as a JSON
// object in a line. `at`: since the start. The arguments of the constructor outlive the object.
class ProbeEventFormat {
 public:
  struct Options {
    bool is_json = false;
    bool lists_overlaps = false;  // text: also the links that probes alone cannot tell apart
  };
  ProbeEventFormat(const topo::Graph& graph, const probe::Matrix& matrix, Options options)
      : graph_(graph), matrix_(matrix), options_(options) {}

  std::string coverage(const probe::Coverage& coverage) const;
  // The address where probers report.
  std::string listening(const std::string& address) const;
  std::string reporting(const probe::ReporterStatus& status) const;
  // A server falls silent, or reports again.
  std::string reporter_change(const probe::ReporterChange& change,
                              const probe::ReporterStatus& status, Seconds at) const;
  std::string refusal(const probe::RefusedReporter& refusal, Seconds at) const;
  std::string faults(const diag::FaultChanges& changes, Seconds at) const;
  // The evidence of routers and connections for a verdict, as it was first and as it is now.
  std::string evidence(const diag::FaultVerdict& first, const diag::FaultVerdict& now,
                       const probe::CollectedEvidence& evidence, Seconds at) const;
  // A loss that retransmits make likely and probes do not see.
  std::string suspicion(const diag::LossSuspicion& suspicion, Seconds at) const;
  // The counters of switches on a verdict: `findings` at its culprit; there are errors at `others`,
  // which are alternatives of it.
  std::string counted(const diag::FaultVerdict& verdict, const diag::CounterFindings& findings,
                      const std::vector<diag::Culprit>& others, Seconds at) const;
  // Errors that counters show where probes lose nothing.
  std::string suspicion(const diag::CounterSuspicion& suspicion, Seconds at) const;
  // Lines of counters that are left out, as a sentence; a switch that is not heard of, or again.
  std::string counters_left_out(const std::string& why, Seconds at) const;
  std::string counter_silence(const diag::CounterSilence& silence, Seconds at) const;
  // Paths that differ from the plan; as text only the first ones of a run.
  std::string divergent_paths(const std::vector<probe::DivergentPath>& paths, Seconds at);
  // The number of paths that routers confirmed.
  std::string survey(const probe::EvidenceCollector& evidence, Seconds at) const;
  // From now on the measured paths count.
  std::string remapped(const probe::EvidenceCollector& evidence, Seconds at) const;
  // Loss and latency between servers.
  std::string pairs(const probe::Collector& collector) const;
  // The prober of this server had ended and was started again.
  std::string restarted(const std::string& server, Seconds at) const;
  struct Totals {
    std::uint64_t probes = 0;  // sent
    std::size_t faults = 0;    // that began
    std::size_t restarts = 0;  // of probers
    Seconds time;
    struct Lines {
      std::uint64_t all = 0;
      std::uint64_t left_out = 0;
    };
    std::optional<Lines> counters;  // if there was a file of them
  };
  // The end of a run, verdict first: "healthy: 24 links, 0 faults, 0 never covered; ...".
  std::string summary(const probe::Coverage& coverage, const Totals& totals) const;

 private:
  std::string verdict(const std::string& event, const diag::FaultVerdict& verdict,
                      Seconds at) const;
  std::string loss_and_latency(const probe::Collector& collector) const;
  std::string worst_pairs(const probe::Collector& collector) const;
  std::string path_text(std::uint32_t path) const;
  // Servers are the first nodes of a graph.
  const std::string& server(std::size_t number) const { return graph_.nodes[number].name; }

  const topo::Graph& graph_;
  const probe::Matrix& matrix_;
  Options options_;
  std::size_t divergent_shown_ = 0;
};

// The events of `regatta rates`: each function returns one event as lines of text, or as a JSON
// object in a line (docs/formats/rates.md). `at`: since the start. `graph` outlives the object.
class RateEventFormat {
 public:
  RateEventFormat(const topo::Graph& graph, bool is_json) : graph_(graph), is_json_(is_json) {}

  std::string plan(const link_rates::RatePlan& plan, double share) const;
  // The address where agents report.
  std::string listening(const std::string& address) const;
  // Servers whose agents report, of all.
  std::string reporting(std::size_t reporting, std::size_t servers) const;
  // Paths that traces have shown.
  std::string learned(const link_rates::PortDiscovery& discovery, Seconds at) const;
  // Trains that arrived; each path needs one at least.
  std::string progress(std::size_t arrived, std::size_t paths, std::size_t busy_links,
                       Seconds at) const;
  // A slow link with its evidence; `totals`: of its counters, where there are any.
  std::string slow(const link_rates::SlowLink& slow,
                   const std::vector<link_rates::PathMeasurement>& measurements,
                   const link_rates::LinkCounterTotals* totals, Seconds at) const;
  // The rates of all links; as text a table.
  std::string rates(const std::vector<link_rates::LinkRate>& links) const;

  struct Totals {
    std::size_t trains = 0;
    std::size_t busy_links = 0;  // at the end
    double largest_share = 0;    // of a link, that trains took
    Seconds time;
  };
  // The end, verdict first.
  std::string summary(const link_rates::RateVerdicts& verdicts, const Totals& totals) const;

  // `regatta rates counters`.
  std::string counter_fault(const link_rates::CounterFault& fault) const;
  std::string counter_summary(const std::vector<link_rates::CounterFault>& faults,
                              const link_rates::SwitchCounterTotals& totals) const;

 private:
  std::string name(std::uint32_t link) const;
  std::string path_name(const link_rates::TrainPath& path) const;

  const topo::Graph& graph_;
  bool is_json_;
};

}  // namespace regatta::report
