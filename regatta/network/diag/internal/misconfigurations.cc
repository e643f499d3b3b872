#include "regatta/network/diag/internal/misconfigurations.h"

#include <algorithm>
#include <utility>

#include "regatta/model/topo/addresses.h"

namespace regatta::diag {
namespace {

// The cable of the NIC that has this address in the plan; none where no NIC has.
LinkId planned_nic(const topo::Graph& graph, std::uint32_t address) {
  const auto link = topo::link_of(address);
  const bool is_nic = link && link->index() < graph.links.size() &&
                      graph.links[link->index()].a_nic >= 0 && topo::address_of(*link) == address;
  return is_nic ? *link : LinkId{};
}

}  // namespace

Misconfigurations::Misconfigurations(const topo::Graph& graph)
    : graph_(graph),
      heard_(2 * graph.links.size()),
      addresses_(graph.nodes.size()),
      is_affected_(graph.links.size()),
      unsettled_(graph) {
  for (PortNumber port = 0; port < heard_.size(); ++port)
    heard_[port] = port ^ 1U;
}

void Misconfigurations::add(const HeardPort& port, Window settled) {
  if (port.port >= heard_.size() || port.heard >= heard_.size()) return;
  if (std::exchange(heard_[port.port], port.heard) != port.heard) evaluate(settled);
}

void Misconfigurations::add(const ServerAddresses& addresses, Window settled) {
  if (addresses.server.index() >= addresses_.size()) return;
  addresses_[addresses.server.index()] = addresses;
  evaluate(settled);
}

void Misconfigurations::find_swaps() {
  for (PortNumber port = 0; port < heard_.size(); ++port) {
    const LinkId own{static_cast<int>(port / 2)};
    const LinkId other{static_cast<int>(heard_[port] / 2)};
    if (own != other) culprits_.push_back(cabling_culprit(own, other));
  }
}

// Addresses of other servers' NICs that this server has. Its own NIC is the one whose interface has
// the address, or the only one that lacks its own.
void Misconfigurations::find_conflicts_of(NodeId server) {
  const auto& interfaces = addresses_[server.index()].interfaces;
  const auto has = [](const std::vector<std::uint32_t>& all, LinkId nic) {
    return std::ranges::find(all, topo::address_of(nic)) != all.end();
  };
  std::vector<LinkId> lacking;
  for (const LinkId link : graph_.links_of[server.index()])
    if (graph_.links[link.index()].a_nic >= 0 &&
        std::ranges::none_of(interfaces, [&](const auto& all) { return has(all, link); }))
      lacking.push_back(link);
  for (const auto& all : interfaces)
    for (const std::uint32_t address : all) {
      const LinkId owner = planned_nic(graph_, address);
      if (!owner.is_valid() || graph_.links[owner.index()].a == server) continue;
      const auto& own = graph_.links_of[server.index()];
      const auto nic = std::ranges::find_if(own, [&](LinkId link) { return has(all, link); });
      const LinkId missing = lacking.size() == 1 ? lacking.front() : LinkId{};
      culprits_.push_back({.kind = CulpritKind::kAddresses,
                           .link = owner,
                           .node = server,
                           .other = nic == own.end() ? missing : *nic});
    }
}

void Misconfigurations::find_conflicts() {
  for (std::size_t node = 0; node < addresses_.size(); ++node)
    if (!addresses_[node].interfaces.empty()) find_conflicts_of(NodeId{static_cast<int>(node)});
}

void Misconfigurations::evaluate(Window settled) {
  culprits_.clear();
  find_swaps();
  find_conflicts();
  std::ranges::sort(culprits_);
  culprits_.erase(std::unique(culprits_.begin(), culprits_.end()), culprits_.end());
  const std::vector<bool> before =
      std::exchange(is_affected_, std::vector<bool>(graph_.links.size()));
  for (const Culprit& culprit : culprits_) {
    is_affected_[culprit.link.index()] = true;
    if (culprit.other.is_valid()) is_affected_[culprit.other.index()] = true;
    if (culprit.kind != CulpritKind::kAddresses || culprit.other.is_valid()) continue;
    for (const LinkId link : graph_.links_of[culprit.node.index()])
      is_affected_[link.index()] = true;
  }
  note_changes(before, settled);
}

void Misconfigurations::note_changes(const std::vector<bool>& was_affected, Window settled) {
  for (std::size_t link = 0; link < was_affected.size(); ++link) {
    if (was_affected[link] == is_affected_[link]) continue;
    const LinkId cable{static_cast<int>(link)};
    if (!is_affected_[link]) unsettled_.add_cable(cable, settled);
    if (graph_.links[link].a_nic < 0) unsettled_.add_ends(cable, settled);
  }
}

std::vector<FaultVerdict> Misconfigurations::verdicts() const {
  std::vector<FaultVerdict> found;
  for (const Culprit& culprit : culprits_)
    found.push_back(
        {.culprit = culprit,
         .symptom = culprit.kind == CulpritKind::kCabling ? Symptom::kSwapped : Symptom::kUsedTwice,
         .loss_share = 0,
         .evidence = {},
         .confidence = 1,
         .since = {},
         .at = {},
         .alternatives = {}});
  return found;
}

bool Misconfigurations::is_affected(std::span<const std::uint32_t> links) const {
  return !culprits_.empty() &&
         std::ranges::any_of(links, [&](std::uint32_t link) { return is_affected_[link / 2]; });
}

}  // namespace regatta::diag
