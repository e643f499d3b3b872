#include "regatta/app/cli/internal/job_ports.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <fmt/core.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/runtime/comm/communicator.h"
#include "regatta/runtime/comm/handshake.h"

namespace regatta::cli {
namespace {

const std::string kPlanned = "planned";
const std::string kSurveyed = "surveyed";
const std::string kHashed = "hashed";

// Above the ports that Linux assigns by itself, so that none is in use.
constexpr fabric::PortRange kRange{.first = 61000, .last = 65535};
// Bounds the search: a job must not wait for the last connection that could have a better path.
constexpr std::uint32_t kSteps = 20'000;

// The answer is the same in all network namespaces.
bool kernel_hashes_by_seeds() {
  std::error_code ignored;
  return std::filesystem::exists("/proc/sys/net/ipv4/fib_multipath_hash_fields", ignored) &&
         std::filesystem::exists("/proc/sys/net/ipv4/fib_multipath_hash_seed", ignored);
}

// Why the hash is not known; nothing where it is.
std::optional<std::string> unknown_hash(const topo::Cluster& cluster) {
  if (!cluster.servers.front().address.empty())
    return "how the switches of real servers hash is not known";
  if (!kernel_hashes_by_seeds())
    return "switches of this kernel hash by no known seed (Linux 6.11 can)";
  return std::nullopt;
}

// Cables between switches that are down; nothing where they cannot be asked for.
fabric::FailureSet cables_down(const lab::LabInfo* lab, const topo::Graph& graph) {
  fabric::FailureSet failed;
  if (lab == nullptr) return failed;
  const auto states = lab::link_states(*lab);
  for (std::size_t i = 0; states && i < std::min(states->size(), graph.links.size()); ++i)
    if (!(*states)[i].up && graph.links[i].a_nic < 0)
      failed.links.push_back(LinkId{static_cast<int>(i)});
  return failed;
}

Result<std::vector<fabric::RankEndpoint>> places_of(const std::vector<std::string>& endpoints) {
  std::vector<fabric::RankEndpoint> places;
  for (const std::string& text : endpoints) {
    REGATTA_TRY(endpoint, comm::parse_endpoint(text));
    in_addr address{};
    if (::inet_pton(AF_INET, endpoint.address.c_str(), &address) != 1)
      return Error{Code::kInvalidInput,
                   fmt::format("--ports planned: {} is no IPv4 address; take --ports surveyed",
                               endpoint.address)};
    places.push_back({ntohl(address.s_addr), endpoint.port});
  }
  return places;
}

std::uint32_t connections_of(std::size_t ranks) {
  return static_cast<std::uint32_t>(
      comm::connections_among(static_cast<int>(ranks), comm::CommunicatorOptions().connections));
}

// Ports to every rank without regard to their paths.
Result<fabric::RankPorts> any_ports(const std::vector<std::string>& endpoints) {
  const std::size_t ranks = endpoints.size();
  const std::uint32_t connections = connections_of(ranks);
  return fabric::RankPorts{.ports = std::vector<std::uint16_t>(ranks * ranks * connections),
                           .ranks = ranks,
                           .connections = connections,
                           .most = {},
                           .flows = {}};
}

agent::PeerPorts rows_of(fabric::RankPorts planned) {
  const auto ports = std::make_shared<const fabric::RankPorts>(std::move(planned));
  return {.of_rank =
              [ports](std::size_t from) {
                std::vector<std::vector<std::uint16_t>> rows(ports->ranks);
                for (std::size_t to = 0; to < ports->ranks; ++to) {
                  const auto one = ports->between(from, to);
                  if (from != to) rows[to].assign(one.begin(), one.end());
                }
                return rows;
              },
          .paths_per_peer = static_cast<int>(ports->paths)};
}

struct JobFabric {
  explicit JobFabric(const topo::Cluster& cluster)
      : graph(topo::build_graph(cluster)), seeds(topo::hash_seeds(cluster, graph)) {}
  topo::Graph graph;
  std::vector<std::uint32_t> seeds;
};

// Around `down`.
Result<fabric::RankPorts> plan_on(const JobFabric& fabric, const fabric::FailureSet& down,
                                  std::span<const fabric::RankPairs> sets,
                                  const std::vector<std::string>& endpoints) {
  REGATTA_TRY(places, places_of(endpoints));
  const topo::Graph whole = fabric::without(fabric.graph, down);
  return fabric::plan_rank_ports(whole, fabric::Routes(whole), fabric.seeds, places,
                                 connections_of(places.size()), sets,
                                 {.range = kRange, .most_steps = kSteps});
}

Result<agent::PeerPorts> plan_job(const JobFabric& fabric, const lab::LabInfo* lab,
                                  const std::vector<workload::ConcurrentSends>& sets,
                                  const std::vector<std::string>& endpoints,
                                  report::PortAssignment& told) {
  const fabric::FailureSet down = cables_down(lab, fabric.graph);
  std::vector<fabric::RankPairs> pairs;
  for (const workload::ConcurrentSends& set : sets) {
    pairs.emplace_back();
    for (const workload::RankSend& send : set.sends)
      pairs.back().push_back({send.from.index(), send.to.index()});
  }
  REGATTA_TRY(planned, plan_on(fabric, down, pairs, endpoints));
  told.sets.clear();
  told.avoided.clear();
  for (std::size_t set = 0; set < pairs.size(); ++set)
    told.sets.push_back({sets[set].name, static_cast<int>(planned.flows[set]),
                         static_cast<int>(planned.most[set])});
  for (const LinkId link : down.links)
    told.avoided.push_back(fabric.graph.links[link.index()].name);
  return rows_of(std::move(planned));
}

// The pairs of sender and receiver in one call: along a ring, or from each rank to every other.
fabric::RankPairs pairs_of(const bench::BenchTask& task) {
  std::vector<std::size_t> order(static_cast<std::size_t>(task.ranks));
  std::iota(order.begin(), order.end(), std::size_t{0});
  fabric::RankPairs pairs;
  if (task.op != bench::CollectiveOp::kAllToAll) return fabric::ring_of(order);
  for (const std::size_t from : order)
    for (const std::size_t to : order)
      if (from != to) pairs.push_back({from, to});
  return pairs;
}

}  // namespace

std::vector<std::string> port_choices() {
  return {kPlanned, kSurveyed, kHashed};
}

Result<PortChoice> choose_ports(const std::string& asked, const topo::Cluster& cluster) {
  if (cluster.servers.size() == 1)
    return PortChoice{kHashed, "one server sends nothing over the fabric"};
  const auto unknown = unknown_hash(cluster);
  if (asked == kPlanned && unknown)
    return Error{Code::kInvalidInput,
                 fmt::format("--ports planned: cluster {}: {}; take --ports surveyed", cluster.name,
                             *unknown)};
  if (!asked.empty()) return PortChoice{asked, "asked for"};
  if (unknown) return PortChoice{kSurveyed, *unknown};
  return PortChoice{kPlanned, "the switches of a lab hash by known seeds"};
}

agent::RankPortPlanner port_planner(const PortChoice& choice, const topo::Cluster& cluster,
                                    const lab::LabInfo* lab, const workload::ModelShape& model,
                                    const workload::Strategy& strategy,
                                    report::PortAssignment& told) {
  told = {.method = choice.method, .why = choice.why};
  if (choice.method == kSurveyed) return {};
  if (choice.method == kHashed)
    return [](const std::vector<std::string>& endpoints) -> Result<agent::PeerPorts> {
      REGATTA_TRY(any, any_ports(endpoints));
      return rows_of(std::move(any));
    };
  return [fabric = JobFabric(cluster), lab, sets = workload::concurrent_sends(model, strategy),
          &told](const std::vector<std::string>& endpoints) {
    return plan_job(fabric, lab, sets, endpoints, told);
  };
}

bench::BenchPortPlanner bench_port_planner(const PortChoice& choice, const topo::Cluster& cluster,
                                           const lab::LabInfo& lab, const bench::BenchTask& task) {
  if (choice.method == kSurveyed) return {};
  if (choice.method == kHashed) return any_ports;
  return [fabric = JobFabric(cluster), lab, sets = std::vector<fabric::RankPairs>{pairs_of(task)}](
             const std::vector<std::string>& endpoints) {
    return plan_on(fabric, cables_down(&lab, fabric.graph), sets, endpoints);
  };
}

}  // namespace regatta::cli
