#include "regatta/runtime/agent/session.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/random.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/model/topo/graph.h"
#include "regatta/runtime/agent/agent.pb.h"
#include "regatta/runtime/agent/internal/agent_handle.h"
#include "regatta/runtime/agent/internal/run_tracker.h"
#include "regatta/runtime/agent/internal/worker_log_line.h"

namespace regatta::agent {
namespace {

constexpr Seconds kTick{0.05};
// A longer gap between two ticks means that this process was stopped itself.
constexpr Seconds kOwnStallLimit{1.0};
constexpr Seconds kStopGrace{1.0};
constexpr Seconds kStopTimeout{2.5};

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

bool is_emulated(const topo::Server& server) {
  return server.address.empty();
}

// The lab of the cluster: the one that is up when it fits, else a new one.
Result<std::pair<lab::LabInfo, bool>> find_or_bring_up(const topo::Cluster& cluster) {
  if (auto found = lab::find(cluster.name)) {
    REGATTA_TRY_DO(lab::check_same_cluster(*found, cluster));
    return std::pair(*std::move(found), false);
  }
  REGATTA_TRY(made, lab::up(cluster, {.die_with_caller = true}));
  return std::pair(std::move(made), true);
}

}  // namespace

struct Session::Impl {
  topo::Cluster cluster;
  topo::Graph graph;
  SessionOptions options;
  std::optional<lab::LabInfo> lab;
  bool owns_lab = false;
  std::string token;
  AgentMessageQueue messages;  // outlives the links
  std::vector<AgentHandle> agents;
  int runs = 0;

  ~Impl();
  Status open();
  Status open_lab();
  Status check(const std::vector<WorkerLaunch>& workers) const;
  RunDescription describe_run(const std::vector<WorkerLaunch>& workers) const;
  void launch(const std::vector<WorkerLaunch>& workers, const RunDescription& description);
  nlohmann::json spec_of(const WorkerLaunch& worker) const;
  void receive(RunTracker& tracker, Seconds limit);
  Status reply_with_peers(RunTracker& tracker, const RankPortPlanner& plan_ports);
  void lose(std::size_t server, const std::string& end, RunTracker& tracker);
  void end_workers(RunTracker& tracker);
  std::set<std::string> links_down() const;
  void blame_links(RunTracker& tracker, const std::set<std::string>& down_before) const;
  bool awaits_stopped() const;
};

Session::Impl::~Impl() {
  for (auto& agent : agents) {
    agent.link.reset();
  }
  for (auto& agent : agents) {
    end_agent(agent, agent.lost ? Seconds{0} : Seconds{3.0});
  }
  if (!owns_lab || options.keep_lab) return;
  if (auto status = lab::down(lab->name); !status) {
    os::log_warning(
        fmt::format("lab {} is not wholly down: {}", lab->name, status.error().message));
  }
}

Status Session::Impl::open_lab() {
  REGATTA_TRY(found, find_or_bring_up(cluster));
  lab = std::move(found.first);
  owns_lab = found.second;
  return {};
}

Status Session::Impl::open() {
  const auto emulated = static_cast<std::size_t>(
      std::count_if(cluster.servers.begin(), cluster.servers.end(), is_emulated));
  if (emulated != 0 && emulated != cluster.servers.size()) {
    return Error{
        Code::kInvalidInput,
        fmt::format("cluster {}: only some servers have an address; give one to all or none",
                    cluster.name)};
  }
  const char* given_token = std::getenv("REGATTA_AGENT_TOKEN");
  token = given_token != nullptr ? given_token : (emulated != 0 ? random_token() : "");
  if (emulated != 0) REGATTA_TRY_DO(open_lab());
  // All are started before the session waits for the first.
  for (const auto& server : cluster.servers) {
    AgentHandle agent;
    agent.server = server.name;
    if (is_emulated(server)) {
      REGATTA_TRY(started, start_agent(*lab, server.name, token));
      agent = std::move(started);
    }
    agents.push_back(std::move(agent));
  }
  for (std::size_t i = 0; i < agents.size(); ++i) {
    const auto& server = cluster.servers[i];
    const std::string target = is_emulated(server) ? "unix:" + agents[i].socket : server.address;
    REGATTA_TRY_DO(connect_agent(agents[i], target, token, i, messages));
  }
  return {};
}

Status Session::Impl::check(const std::vector<WorkerLaunch>& workers) const {
  for (const auto& worker : workers) {
    const auto& agent = agents[worker.device.server.index()];
    if (agent.lost) {
      return Error{Code::kUnavailable, fmt::format("server {}: {}", agent.server, *agent.lost)};
    }
  }
  return {};
}

RunDescription Session::Impl::describe_run(const std::vector<WorkerLaunch>& workers) const {
  RunDescription description;
  description.run = runs;
  for (const auto& server : cluster.servers) {
    description.servers.push_back({server.name, {}, is_emulated(server)});
  }
  const bool crosses = std::any_of(workers.begin(), workers.end(), [&](const WorkerLaunch& worker) {
    return worker.device.server != workers.front().device.server;
  });
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const topo::DeviceRef device = workers[i].device;
    description.rank_names.push_back(
        fmt::format("rank {} ({})", i, topo::to_string(cluster, device)));
    description.server_of_rank.push_back(device.server.index());
    const int nic = topo::nic_of(cluster, device);
    if (!crosses || nic < 0) continue;
    const LinkId link = topo::nic_link(graph, device.server, nic);
    description.servers[device.server.index()].links[fmt::format("nic{}", nic)] =
        graph.links[link.index()].name;
  }
  return description;
}

nlohmann::json Session::Impl::spec_of(const WorkerLaunch& worker) const {
  nlohmann::json spec = worker.spec ? *worker.spec : nlohmann::json::object();
  const auto server = worker.device.server;
  const auto& described = cluster.servers[server.index()];
  spec["server"] = described.name;
  spec["device_index"] = worker.device.index;
  spec["address"] = "127.0.0.1";
  spec["link_rate_Bps"] = cluster.type_of(server).nic_rate.value;
  spec["compute_cgroup"] = "";
  spec["cpu_share"] = 0.0;
  if (lab) {
    const auto& emulated = lab->servers[server.index()];
    const auto nic = static_cast<std::size_t>(std::max(0, topo::nic_of(cluster, worker.device)));
    const auto device = static_cast<std::size_t>(worker.device.index);
    if (nic < emulated.nic_addresses.size()) spec["address"] = emulated.nic_addresses[nic];
    if (device < emulated.devices.size()) {
      spec["compute_cgroup"] = emulated.devices[device].cgroup;
      spec["cpu_share"] = emulated.devices[device].cpu_share;
    }
  } else if (described.address.rfind("unix:", 0) != 0) {
    spec["address"] = described.address.substr(0, described.address.rfind(':'));
  }
  return spec;
}

void Session::Impl::launch(const std::vector<WorkerLaunch>& workers,
                           const RunDescription& description) {
  const std::string job_token = random_token();
  for (std::size_t i = 0; i < workers.size(); ++i) {
    nlohmann::json spec = spec_of(workers[i]);
    spec["rank"] = i;
    spec["world_size"] = workers.size();
    spec["rank_names"] = description.rank_names;
    spec["job_token"] = job_token;
    proto::SessionRequest request;
    auto* launch = request.mutable_launch();
    launch->set_run(description.run);
    launch->set_rank(static_cast<int>(i));
    launch->set_program(workers[i].program);
    launch->mutable_arguments()->Assign(workers[i].arguments.begin(), workers[i].arguments.end());
    // A device is one thread: the helpers that BLAS and OpenMP start by themselves spin on the
    // cores of the other devices.
    launch->add_environment("OPENBLAS_NUM_THREADS=1");
    launch->add_environment("OMP_NUM_THREADS=1");
    launch->set_first_line(spec.dump());
    agents[workers[i].device.server.index()].link->send(request);
  }
}

void Session::Impl::lose(std::size_t server, const std::string& end, RunTracker& tracker) {
  AgentHandle& agent = agents[server];
  if (agent.lost) return;
  std::string how = fmt::format("the connection to its agent broke: {}", end);
  if (agent.pid >= 0) {
    const std::string ended_by = end_agent(agent, Seconds{0.3});
    if (!ended_by.empty()) how = fmt::format("its agent was ended by {}", ended_by);
  }
  agent.lost = how;
  tracker.on_server_lost(server, how, os::monotonic_now());
}

void Session::Impl::receive(RunTracker& tracker, Seconds limit) {
  for (auto& message : messages.pop_all(limit)) {
    AgentHandle& agent = agents[message.server];
    if (!message.event) {
      lose(message.server, message.end, tracker);
      continue;
    }
    const auto& event = *message.event;
    agent.last_heard = os::monotonic_now();
    if (event.has_stopped()) agent.is_stopped = true;
    if (event.has_carrier() && event.carrier().up()) agent.down.erase(event.carrier().interface());
    if (event.has_carrier() && !event.carrier().up())
      agent.down.insert(event.carrier().interface());
    if (event.has_log()) {
      const WorkerLogLine line = parse_worker_log_line(event.log().text());
      os::log(line.level, fmt::format("rank {}: {}", event.log().rank(), line.text));
    }
    tracker.on_event(message.server, event, agent.last_heard);
  }
}

Status Session::Impl::reply_with_peers(RunTracker& tracker, const RankPortPlanner& plan_ports) {
  const auto peers = tracker.take_peers();
  if (!peers) return {};
  nlohmann::json line{{"peers", *peers}};
  PeerPorts ports;
  if (plan_ports) {
    REGATTA_TRY(planned, plan_ports(*peers));
    ports = std::move(planned);
    line["ways"] = ports.paths_per_peer;
  }
  const auto& servers = tracker.server_of_rank();
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (ports.of_rank) line["ports"] = ports.of_rank(i);
    proto::SessionRequest request;
    request.mutable_reply()->set_rank(static_cast<int>(i));
    request.mutable_reply()->set_line(line.dump());
    agents[servers[i]].link->send(request);
  }
  return {};
}

bool Session::Impl::awaits_stopped() const {
  const Seconds now = os::monotonic_now();
  return std::any_of(agents.begin(), agents.end(), [now](const AgentHandle& agent) {
    return !agent.lost && !agent.is_stopped && now - agent.last_heard < FailureTimeouts().silence;
  });
}

void Session::Impl::end_workers(RunTracker& tracker) {
  proto::SessionRequest request;
  request.mutable_stop()->set_grace_s(kStopGrace.value);
  for (auto& agent : agents) {
    agent.is_stopped = false;
    if (!agent.lost) agent.link->send(request);
  }
  const Seconds give_up = os::monotonic_now() + kStopTimeout;
  while (awaits_stopped() && os::monotonic_now() < give_up) {
    receive(tracker, kTick);
  }
  for (auto& agent : agents) {
    if (agent.is_stopped || agent.lost) continue;
    agent.lost = "its agent did not reply";
    end_agent(agent, Seconds{0});  // its workers die with it, also when they are stopped
  }
}

// The cables of the lab without carrier; no agent sees those between switches.
std::set<std::string> Session::Impl::links_down() const {
  std::set<std::string> down;
  if (!lab) return down;
  auto states = lab::link_states(*lab);
  if (!states) return down;
  for (const auto& link : *states) {
    if (!link.up) down.insert(link.name);
  }
  return down;
}

void Session::Impl::blame_links(RunTracker& tracker,
                                const std::set<std::string>& down_before) const {
  for (const auto& name : links_down()) {
    if (down_before.count(name) != 0) continue;
    tracker.add_cause({CauseKind::kCarrierLost,
                       os::monotonic_now(),
                       {Code::kUnavailable, fmt::format("link {}: carrier lost", name)}});
  }
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

Result<Session> Session::open(const topo::Cluster& cluster, const SessionOptions& options) {
  REGATTA_TRY_DO(topo::check_can_start(cluster));
  auto impl = std::make_unique<Impl>();
  impl->cluster = cluster;
  impl->graph = topo::build_graph(cluster);
  impl->options = options;
  REGATTA_TRY_DO(impl->open());
  return Session(std::move(impl));
}

const std::optional<lab::LabInfo>& Session::lab() const {
  return impl_->lab;
}

Status Session::run(const std::vector<WorkerLaunch>& workers,
                    const std::function<void(Rank, const nlohmann::json&)>& on_event,
                    const std::atomic<bool>& stop, const RankPortPlanner& plan_ports) {
  Impl& self = *impl_;
  REGATTA_TRY_DO(self.check(workers));
  ++self.runs;
  const RunDescription description = self.describe_run(workers);
  RunTracker tracker(description, os::monotonic_now());
  for (std::size_t i = 0; i < self.agents.size(); ++i) {
    for (const auto& interface : self.agents[i].down) {
      tracker.carrier_was_down(i, interface, os::monotonic_now());
    }
  }
  const std::set<std::string> down_before = self.links_down();
  bool has_checked_links = false;
  self.launch(workers, description);
  Seconds last_tick = os::monotonic_now();
  while (!tracker.succeeded()) {
    self.receive(tracker, kTick);
    for (const auto& [rank, event] : tracker.take_events()) {
      on_event(rank, event);
    }
    if (const Status replied = self.reply_with_peers(tracker, plan_ports); !replied) {
      self.end_workers(tracker);
      return replied;
    }
    const Seconds now = os::monotonic_now();
    if (now - last_tick > kOwnStallLimit) tracker.restart_silence_timeouts(now);
    last_tick = now;
    if (tracker.is_gathering() && !std::exchange(has_checked_links, true)) {
      self.blame_links(tracker, down_before);
    }
    const auto failure = tracker.failure(now);
    if (!failure && !stop) continue;
    self.end_workers(tracker);
    if (stop) return Error{Code::kUnavailable, "stopped on request"};
    return *failure;
  }
  return {};
}

}  // namespace regatta::agent
