#include "regatta/app/cli/internal/probe_lab.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/handshake.h"

namespace regatta::cli {
namespace {

constexpr Seconds kCarriers{0.3};
constexpr Seconds kCabling{1};

}  // namespace

LabProbers::~LabProbers() {
  const Seconds now = os::monotonic_now();
  for (Prober& one : probers_)
    if (!one.process.end(now))
      static_cast<void>(os::send_signal(one.process.pid(), SIGTERM).has_value());
  // One that is stopped does not see that.
  for (Prober& one : probers_)
    if (!one.process.end(now))
      static_cast<void>(os::terminate(one.process.pid(), Seconds{0.5}).has_value());
}

Result<pid_t> LabProbers::start_one(NodeId server) const {
  REGATTA_TRY(folder, os::executable_folder());
  const auto part = part_of(*plan_.graph, *plan_.matrix, server);
  REGATTA_TRY(plan, os::memory_file("plan of probes",
                                    plan_text(*plan_.graph, *plan_.matrix, part, plan_.number)));
  return lab::spawn(*plan_.lab, plan_.graph->nodes[server.index()].name,
                    {folder + "/regatta-prober", "--plan", "-", "--collector", plan_.collector,
                     "--period", plan_.period},
                    {.environment = {}, .stdin_fd = plan.get()});
}

const std::string& LabProbers::name_of(const Prober& one) const {
  return plan_.graph->nodes[one.server.index()].name;
}

Status LabProbers::start(const lab::LabInfo& lab, const topo::Graph& graph,
                         const probe::Matrix& matrix, const std::string& collector,
                         const std::string& period) {
  plan_ = {&lab, &graph, &matrix, plan_number(graph, matrix), collector, period};
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind != topo::NodeKind::kServer) continue;
    const NodeId server{static_cast<int>(i)};
    KeptProcess process([this, server] { return start_one(server); });
    REGATTA_TRY_DO(process.start(os::monotonic_now()));
    probers_.push_back({.server = server, .process = std::move(process)});
  }
  return {};
}

std::vector<std::string> LabProbers::ended() {
  std::vector<std::string> names;
  for (Prober& one : probers_)
    if (one.process.end(os::monotonic_now())) names.push_back(name_of(one));
  return names;
}

std::vector<std::string> LabProbers::restart_ended(Seconds now) {
  std::vector<std::string> names;
  for (Prober& one : probers_)
    if (one.process.end(now) && one.process.restart(now)) names.push_back(name_of(one));
  return names;
}

std::size_t LabProbers::restarts() const {
  std::size_t sum = 0;
  for (const Prober& one : probers_)
    sum += one.process.restarts();
  return sum;
}

Status LabCarriers::sample(const lab::LabInfo& lab, probe::Collector& collector) {
  if (os::monotonic_now() < next_) return {};
  next_ = os::monotonic_now() + kCarriers;
  REGATTA_TRY(states, lab::link_states(lab));
  up_.resize(states.size(), true);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].up == up_[i]) continue;
    up_[i] = states[i].up;
    collector.add(diag::CarrierEvent{.link = LinkId{static_cast<int>(i)},
                                     .up = states[i].up,
                                     .source = diag::CarrierSource::kLab});
  }
  return {};
}

Status LabCabling::check(const lab::LabInfo& lab, probe::Collector& collector,
                         diag::FaultChanges& changes) {
  const bool has_news = std::ranges::any_of(changes.begun, [](const diag::FaultVerdict& one) {
    return is_fault(one) && !is_misconfiguration(one.culprit) &&
           one.culprit.kind != diag::CulpritKind::kServer;
  });
  if (!has_news && os::monotonic_now() < next_) return {};
  next_ = os::monotonic_now() + kCabling;
  REGATTA_TRY(heard, lab::heard_ports(lab));
  heard_.resize(heard.size(), -1);
  bool has_changed = false;
  for (std::size_t port = 0; port < heard.size(); ++port) {
    // A port that hears nothing now says nothing about where its cable is.
    if (heard[port] < 0 || heard[port] == heard_[port]) continue;
    heard_[port] = heard[port];
    has_changed = true;
    collector.add(diag::HeardPort{.port = static_cast<diag::PortNumber>(port),
                                  .heard = static_cast<diag::PortNumber>(heard[port])});
  }
  if (has_news && has_changed) changes = collector.reconsider(std::move(changes), os::system_now());
  return {};
}

}  // namespace regatta::cli
