#include "regatta/network/heal/verdicts.h"

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/heal/event_text.h"

namespace regatta::heal {
namespace {

Harm harm_of(diag::Symptom symptom) {
  if (symptom == diag::Symptom::kLoss) return Harm::kLoss;
  return symptom == diag::Symptom::kNoCarrier ? Harm::kNoCarrier : Harm::kBlackHole;
}

}  // namespace

std::vector<Fault> faults_of(const diag::FaultVerdict& verdict) {
  const diag::Culprit& culprit = verdict.culprit;
  const Harm harm = harm_of(verdict.symptom);
  if (!diag::is_fault(verdict)) return {};
  if (culprit.kind == diag::CulpritKind::kSwitch) return {{Place::kSwitch, 0, culprit.node, harm}};
  const bool is_nic = culprit.kind == diag::CulpritKind::kNic;
  std::vector<Fault> faults;
  if (culprit.kind != diag::CulpritKind::kLink && !is_nic) return faults;
  for (const bool forward : {true, false}) {
    const bool suffers = is_nic || (forward ? culprit.forward : culprit.backward);
    if (suffers)
      faults.push_back({Place::kLink, fabric::number_of({culprit.link, forward}), {}, harm});
  }
  return faults;
}

bool is_probed(const diag::FaultVerdict& verdict) {
  return verdict.symptom == diag::Symptom::kLoss || verdict.symptom == diag::Symptom::kBlackHole ||
         verdict.symptom == diag::Symptom::kSomeFlows;
}

std::string report_lines(const topo::Graph& graph, const diag::FaultVerdict& verdict) {
  std::string lines;
  if (diag::is_misconfiguration(verdict.culprit))
    lines += nlohmann::json{{"noted", diag::to_string(graph, verdict.culprit)},
                            {"why", std::string(diag::to_string(verdict.symptom))}}
                 .dump() +
             "\n";
  for (const Fault& fault : faults_of(verdict)) {
    nlohmann::json broken;
    if (fault.place == Place::kSwitch) {
      broken["switch"] = graph.nodes[fault.node.index()].name;
    } else {
      broken["link"] = graph.links[fault.link / 2].name;
      broken["from"] = graph.nodes[fabric::tail_of(graph, fault.link).index()].name;
    }
    nlohmann::json line{{"broken", broken},
                        {"harm", to_string(fault.harm)},
                        {"why", diag::to_string(graph, verdict)}};
    if (is_probed(verdict)) line["probed"] = true;
    lines += line.dump() + "\n";
  }
  return lines;
}

std::string losses_line(const topo::Graph& graph, std::span<const diag::LinkLoss> losses,
                        Seconds span) {
  constexpr std::size_t kLinksMost = 500;
  if (losses.size() > kLinksMost) return "";
  nlohmann::json lossy = nlohmann::json::array();
  for (const diag::LinkLoss& loss : losses) {
    nlohmann::json one{{"link", graph.links[loss.link / 2].name},
                       {"from", graph.nodes[fabric::tail_of(graph, loss.link).index()].name}};
    if (loss.is_blind) {
      one["blind"] = true;
    } else {
      one["now"] = loss.now;
      one["left"] = loss.left;
    }
    lossy.push_back(std::move(one));
  }
  return json_line({{"lossy", std::move(lossy)}, {"span_s", span.value}}) + "\n";
}

}  // namespace regatta::heal
