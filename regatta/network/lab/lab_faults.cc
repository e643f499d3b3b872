// Faults and counters of the lab.
#include <csignal>
#include <string>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/lab/internal/control.h"
#include "regatta/network/lab/internal/processes.h"
#include "regatta/network/lab/internal/state.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {
namespace {

bool is_server(const LabInfo& lab, const std::string& name) {
  for (const LabServer& server : lab.servers) {
    if (server.name == name) return true;
  }
  return false;
}

Status check_server(const LabInfo& lab, const std::string& name) {
  if (is_server(lab, name)) return {};
  std::vector<std::string> names;
  for (const LabServer& server : lab.servers)
    names.push_back(server.name);
  return Error{Code::kNotFound, fmt::format("server {}: not in lab {}, which has {}", name,
                                            lab.name, join(names, ", "))};
}

Status check_link(const LabInfo& lab, const std::string& name) {
  REGATTA_TRY(links, link_states(lab));
  std::vector<std::string> names;
  for (const LinkState& link : links) {
    if (link.name == name) return {};
    names.push_back(link.name);
  }
  return Error{Code::kNotFound, fmt::format("link {}: not in lab {}, which has {}", name, lab.name,
                                            join(names, ", "))};
}

Status ask(const LabInfo& lab, const nlohmann::json& message) {
  const auto answer = request(lab, message);
  if (!answer) return answer.error();
  return {};
}

Status inject_link(const LabInfo& lab, const Fault& fault) {
  if (fault.kind == FaultKind::kLinkSlow && !(fault.rate.value > 0)) {
    return Error{Code::kInvalidInput,
                 fmt::format("link {}: the rate must be above 0, as in 10Mbps", fault.target)};
  }
  if (fault.kind == FaultKind::kLinkDrop && !(fault.drop_share > 0 && fault.drop_share <= 1)) {
    return Error{Code::kInvalidInput,
                 fmt::format("link {}: the share to drop must be above 0 and at most 1, as in 5%",
                             fault.target)};
  }
  REGATTA_TRY_DO(check_link(lab, fault.target));
  if (fault.kind == FaultKind::kLinkSwap) {
    REGATTA_TRY_DO(check_link(lab, fault.other));
    return ask(lab, {{"op", "swap"}, {"link", fault.target}, {"other", fault.other}});
  }
  const char* op = fault.kind == FaultKind::kLinkDown   ? "down"
                   : fault.kind == FaultKind::kLinkSlow ? "slow"
                                                        : "drop";
  return ask(lab, {{"op", op},
                   {"link", fault.target},
                   {"rate_Bps", fault.rate.value},
                   {"share", fault.drop_share}});
}

}  // namespace

Status inject(const LabInfo& lab, const Fault& fault) {
  if (fault.kind != FaultKind::kServerStop && fault.kind != FaultKind::kServerKill) {
    return inject_link(lab, fault);
  }
  REGATTA_TRY(state, living_state(lab));
  REGATTA_TRY_DO(check_server(lab, fault.target));
  signal_processes(state, fault.target, fault.kind == FaultKind::kServerStop ? SIGSTOP : SIGKILL);
  return {};
}

Status clear(const LabInfo& lab, const std::string& target) {
  REGATTA_TRY(state, living_state(lab));
  const bool server = is_server(lab, target);
  if (!server && !target.empty()) REGATTA_TRY_DO(check_link(lab, target));
  if (!server) REGATTA_TRY_DO(ask(lab, {{"op", "clear"}, {"link", target}}));
  if (server || target.empty()) signal_processes(state, target, SIGCONT);
  return {};
}

Status set_converging(const LabInfo& lab, bool on) {
  return ask(lab, {{"op", "converge"}, {"on", on}});
}

Result<std::vector<int>> heard_ports(const LabInfo& lab) {
  REGATTA_TRY(answer, request(lab, {{"op", "heard"}}));
  std::vector<int> ports;
  constexpr IntRange kPorts{.low = -1,
                            .high = 2 * static_cast<long long>(topo::kMaxAddressedLinks)};
  for (const JsonReader& port : answer.at("heard").items())
    ports.push_back(port.as<int>(kPorts));
  return answer.finish(std::move(ports));
}

Result<std::vector<LinkCounter>> link_counters(const LabInfo& lab, const topo::Cluster& cluster) {
  REGATTA_TRY_DO(check_same_cluster(lab, cluster));
  REGATTA_TRY(states, link_states(lab));
  std::vector<LinkCounter> counters;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const LinkId link{static_cast<int>(i)};
    counters.push_back({{link, true}, states[i].sent_by_a});
    counters.push_back({{link, false}, states[i].sent_by_b});
  }
  return counters;
}

}  // namespace regatta::lab
