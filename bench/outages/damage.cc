#include "damage.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <fmt/core.h>
#include <nftables/libnftables.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/process.h"

namespace regatta::outages {
namespace {

const std::string& name_of(const LabNet& net, NodeId node) {
  return net.graph.nodes[node.index()].name;
}

template <typename Work>
Result<Blow> timed(Work&& work) {
  const Seconds at = os::monotonic_now();
  REGATTA_TRY_DO(work());
  return Blow{at, os::monotonic_now() - at};
}

// "port3": the end of a link at this node.
Result<std::string> interface_at(const LabNet& net, std::uint32_t link, NodeId node) {
  REGATTA_TRY(states, lab::link_states(net.lab));
  const lab::LinkState& state = states[link / 2];
  const std::string& port = state.a.starts_with(name_of(net, node) + " ") ? state.a : state.b;
  return port.substr(port.find(' ') + 1);
}

Result<Blow> set_up(const LabNet& net, std::uint32_t link, NodeId node, bool up) {
  REGATTA_TRY(interface, interface_at(net, link, node));
  REGATTA_TRY(space, lab::open_network(net.lab, name_of(net, node)));
  REGATTA_TRY(scope, os::NetworkNamespaceScope::enter(space));
  REGATTA_TRY(netlink, os::Netlink::open());
  return timed([&] { return netlink.set_up(interface, up); });
}

Result<Blow> run_nft(const LabNet& net, NodeId node, const std::string& commands) {
  REGATTA_TRY(space, lab::open_network(net.lab, name_of(net, node)));
  REGATTA_TRY(scope, os::NetworkNamespaceScope::enter(space));
  const std::unique_ptr<nft_ctx, void (*)(nft_ctx*)> context(::nft_ctx_new(NFT_CTX_DEFAULT),
                                                             ::nft_ctx_free);
  ::nft_ctx_buffer_error(context.get());
  return timed([&]() -> Status {
    if (::nft_run_cmd_from_buffer(context.get(), commands.c_str()) == 0) return {};
    return Error{Code::kUnsupported, ::nft_ctx_get_error_buffer(context.get())};
  });
}

}  // namespace

Result<Blow> inflict(const LabNet& net, Damage damage, const Target& target) {
  const NodeId start = net.paths.start_of[target.link];
  const NodeId end = net.paths.end_of[target.link];
  switch (damage) {
    case Damage::kUpstream:
    case Damage::kDownstream:
      return set_up(net, target.link, start, false);
    case Damage::kFarEnd:
      return set_up(net, target.link, end, false);
    case Damage::kSilent: {
      REGATTA_TRY(interface, interface_at(net, target.link, end));
      return run_nft(net, end,
                     fmt::format("add table netdev outage\n"
                                 "add chain netdev outage arrive {{ type filter hook ingress "
                                 "device \"{}\" priority 0; policy drop; }}\n",
                                 interface));
    }
    case Damage::kBlackHole:
      return run_nft(net, target.node,
                     "add table ip outage\n"
                     "add chain ip outage pass { type filter hook forward priority 0; "
                     "policy drop; }\n");
  }
  return Error{Code::kUnsupported, "there is no such damage"};
}

Result<Blow> undo(const LabNet& net, Damage damage, const Target& target) {
  const NodeId start = net.paths.start_of[target.link];
  const NodeId end = net.paths.end_of[target.link];
  switch (damage) {
    case Damage::kUpstream:
    case Damage::kDownstream:
      return set_up(net, target.link, start, true);
    case Damage::kFarEnd:
      return set_up(net, target.link, end, true);
    case Damage::kSilent:
      return run_nft(net, end, "delete table netdev outage\n");
    case Damage::kBlackHole:
      return run_nft(net, target.node, "delete table ip outage\n");
  }
  return Error{Code::kUnsupported, "there is no such damage"};
}

Meets meets(const LabNet& net, Damage damage, const Target& target,
            const std::vector<std::uint32_t>& way) {
  for (const std::uint32_t link : way) {
    const bool yes =
        damage == Damage::kBlackHole ? net.paths.end_of[link] == target.node : link == target.link;
    if (yes) return Meets::kYes;
    const bool is_cable = damage != Damage::kBlackHole && damage != Damage::kSilent;
    if (is_cable && link / 2 == target.link / 2) return Meets::kAgainst;
  }
  return Meets::kNot;
}

}  // namespace regatta::outages
