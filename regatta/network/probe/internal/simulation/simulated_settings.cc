#include "regatta/network/probe/internal/simulation/simulated_settings.h"

#include <algorithm>
#include <utility>

#include "regatta/model/topo/addresses.h"

namespace regatta::probe {
namespace {

void report_addresses(const topo::Graph& graph, const SimulatedFault& fault, Seconds now,
                      diag::Locator& locator) {
  std::vector<std::vector<std::uint32_t>> interfaces;
  for (const LinkId link : graph.links_of[fault.culprit.node.index()]) {
    interfaces.push_back({topo::address_of(link)});
    if (link == fault.culprit.other && fault.is_broken(now))
      interfaces.back().push_back(topo::address_of(fault.culprit.link));
  }
  locator.add(diag::ServerAddresses{.server = fault.culprit.node, .interfaces = interfaces});
}

void report_ports(const SimulatedFault& fault, Seconds now, diag::Locator& locator) {
  const auto one = static_cast<diag::PortNumber>(2 * fault.culprit.link.value);
  const auto other = static_cast<diag::PortNumber>(2 * fault.culprit.other.value);
  const auto [near, far] = fault.is_broken(now) ? std::pair(other, one) : std::pair(one, other);
  for (const auto& [port, heard] : {std::pair(one, near + 1), std::pair(near + 1, one),
                                    std::pair(other, far + 1), std::pair(far + 1, other)})
    locator.add(diag::HeardPort{.port = port, .heard = heard});
}

}  // namespace

diag::FaultChanges locate_with_settings(const topo::Graph& graph,
                                        std::span<const SimulatedFault> faults,
                                        diag::Locator& locator, Seconds now) {
  for (const SimulatedFault& fault : faults)
    if (fault.culprit.kind == diag::CulpritKind::kAddresses)
      report_addresses(graph, fault, now, locator);
  diag::FaultChanges changes = locator.locate(now);
  const bool has_begun = std::ranges::any_of(changes.begun, diag::is_fault);
  if (!has_begun) return changes;
  bool has_swaps = false;
  for (const SimulatedFault& fault : faults) {
    if (fault.culprit.kind != diag::CulpritKind::kCabling) continue;
    report_ports(fault, now, locator);
    has_swaps = true;
  }
  return has_swaps ? locator.reconsider(std::move(changes), now) : changes;
}

}  // namespace regatta::probe
