// report/rate_report.h: the rates of links, from trains of packets and from counters of switches:
// text for people, JSON for programs. Texts end with a newline.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/link_rates/counter_verdict.h"
#include "regatta/network/link_rates/port_discovery.h"
#include "regatta/network/link_rates/rate_plan.h"
#include "regatta/network/link_rates/rate_verdict.h"
#include "regatta/network/link_rates/switch_counters.h"

namespace regatta::report {

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
