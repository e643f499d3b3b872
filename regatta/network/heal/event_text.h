// heal/event_text.h: faults and events in JSON, one object a line, and in sentences. The format:
// docs/formats/heal.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/heal/healer.h"

namespace regatta::heal {

// A line of a prober, a locator or a person: a fault, or what probes lose on the links by now.
struct FaultReport {
  std::vector<Fault> faults;  // one; two for a link without a direction; none: `noted`
  std::string why;
  bool is_probed = false;                               // as in Healer::report()
  std::optional<std::vector<diag::LinkLoss>> losses{};  // then there are no faults
  Seconds losses_span = kLossSpan;                      // as in diag::Locator::loss_span()
  std::string noted{};  // set up wrongly, for people to correct: nothing is to be withdrawn
};

// {"broken": {"link": "leaf0-spine1", "from": "leaf0"}, "harm": "loss", "why": "..."},
// {"lossy": [{"link": "leaf0-spine1", "from": "leaf0", "now": 0.05, "left": 0.01}]}, or
// {"noted": "cables leaf0-spine0 and leaf1-spine0", "why": "swapped"}.
// kInvalidInput names what is wrong and what exists.
Result<FaultReport> parse_report(const topo::Graph& graph, std::string_view text);

nlohmann::json to_json(const topo::Graph& graph, const Event& event);
// The faults held now, for subscribers that connect later: {"event": "held", ...}.
nlohmann::json held_to_json(const topo::Graph& graph, const std::vector<HeldFault>& held,
                            Seconds now);

std::string_view to_string(EventKind kind);  // "withdrawn"
std::string_view to_string(Harm harm);       // "no carrier"
// "withdrawn: leaf0-spine1 from leaf0 to spine1 (no carrier), from 2 routes of leaf0".
std::string to_text(const topo::Graph& graph, const Event& event);

}  // namespace regatta::heal
