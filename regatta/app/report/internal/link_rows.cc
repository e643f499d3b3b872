#include "regatta/app/report/internal/link_rows.h"

#include <map>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

double share_of_rate(Bytes bytes, Seconds step, BytesPerSecond rate) {
  if (step.value <= 0 || rate.value <= 0) return 0;
  return static_cast<double>(bytes.value) / (rate.value * step.value);
}

// Forward sorts before backward.
struct Order {
  bool operator()(const topo::DirectedLink& a, const topo::DirectedLink& b) const {
    if (a.link != b.link) return a.link < b.link;
    return a.forward && !b.forward;
  }
};

}  // namespace

std::vector<LinkRow> link_rows(const topo::Graph& graph, const PlanRun& run) {
  std::map<topo::DirectedLink, LinkRow, Order> rows;
  for (const plan::LinkTraffic& traffic : run.plan.prediction.traffic)
    rows[traffic.link].predicted += traffic.bytes;
  for (const plan::LinkTraffic& traffic : run.measured.traffic)
    rows[traffic.link].measured += traffic.bytes;
  std::vector<LinkRow> list;
  list.reserve(rows.size());
  for (auto& [directed, row] : rows) {
    if (!directed.link.is_valid() || directed.link.index() >= graph.links.size()) continue;
    if (row.predicted.value == 0 && row.measured.value == 0) continue;
    const topo::Link& link = graph.links[directed.link.index()];
    row.link = directed;
    row.name = link.name;
    row.from = graph.nodes[(directed.forward ? link.a : link.b).index()].name;
    row.to = graph.nodes[(directed.forward ? link.b : link.a).index()].name;
    row.rate = link.rate;
    row.predicted_share = share_of_rate(row.predicted, run.plan.prediction.step_time, link.rate);
    row.measured_share = share_of_rate(row.measured, run.measured.step_time, link.rate);
    list.push_back(row);
  }
  return list;
}

}  // namespace regatta::report
