// `regatta fabric ports`: chooses source ports so that the hashes of the switches spread the
// connections over different links.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/fabric_command.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/output_files.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/app/report/fabric_report.h"
#include "regatta/base/os/file.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/port_plan.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::cli {
namespace {

struct PortsOptions {
  std::string cluster;
  std::string pairs;  // a file
  bool ring = false;
  bool permutation = false;
  std::uint32_t connections = 1;
  std::uint64_t seed = 1;
  std::string out;
  bool json = false;
};

struct Plan {
  fabric::NicPairs pairs;  // with the ports of a kernel
  fabric::PortPlan ports;
  report::LinkSharing planned;
  report::LinkSharing by_chance;  // with the ports of `pairs`
};

Result<fabric::NicPairs> pairs_of(const topo::Cluster& cluster, const topo::Graph& graph,
                                  const PortsOptions& options) {
  if (options.ring || options.permutation) {
    auto pairs = options.ring
                     ? fabric::ring_pairs(cluster, graph, options.connections)
                     : fabric::permutation_pairs(cluster, graph, options.connections, options.seed);
    if (pairs.pairs.empty())
      return Error{Code::kInvalidInput,
                   fmt::format("cluster {} has no two servers with the same NICs; name NICs with "
                               "--pairs",
                               cluster.name)};
    return pairs;
  }
  if (options.pairs.empty())
    return Error{Code::kInvalidInput,
                 "fabric ports: name the pairs of NICs with --pairs FILE, --ring or --permutation"};
  const auto text = os::read_text_file(options.pairs);
  if (!text) return Error{Code::kInvalidInput, text.error().message + "; check the path"};
  return fabric::parse_pairs(cluster, graph, options.connections, *text, options.pairs);
}

// Fails with kInvalidInput when no path joins the two NICs of a connection.
Result<report::LinkSharing> link_sharing(
    const topo::Graph& graph, const fabric::Routes& routes, std::span<const std::uint32_t> seeds,
    const std::vector<fabric::PlannedConnection>& connections) {
  std::vector<std::vector<std::uint32_t>> paths;
  std::vector<std::uint32_t> count(2 * graph.links.size(), 0);
  for (const fabric::PlannedConnection& one : connections) {
    auto path =
        routes.path(one.from, one.to, fabric::EcmpNextHop{.flow = one.flow, .seeds = seeds});
    if (!path)
      return Error{Code::kInvalidInput,
                   fmt::format("no switch joins {} and {}; pair NICs of one plane",
                               fabric::nic_name(graph, one.from), fabric::nic_name(graph, one.to))};
    std::erase_if(*path, [&](std::uint32_t link) { return at(graph.links, link / 2).a_nic >= 0; });
    for (const std::uint32_t link : *path)
      ++at(count, link);
    paths.push_back(*std::move(path));
  }
  report::LinkSharing sharing;
  for (const std::vector<std::uint32_t>& path : paths) {
    std::uint32_t most = 0;
    for (const std::uint32_t link : path)
      most = std::max(most, at(count, link));
    sharing.of_connection.push_back(most);
    sharing.max = std::max(sharing.max, most);
  }
  return sharing;
}

Result<Plan> plan_of(const topo::Cluster& cluster, const topo::Graph& graph,
                     const PortsOptions& options) {
  REGATTA_TRY(pairs, pairs_of(cluster, graph, options));
  const fabric::Routes routes(graph);
  const std::vector<std::uint32_t> seeds = topo::hash_seeds(cluster, graph);
  std::vector<fabric::PlannedConnection> connections;
  for (std::uint32_t pair = 0; pair < pairs.pairs.size(); ++pair)
    for (std::uint32_t i = 0; i < pairs.connections; ++i)
      connections.push_back({pairs.pairs[pair].from, pairs.pairs[pair].to, pairs.tuple(pair, i)});
  REGATTA_TRY(by_chance, link_sharing(graph, routes, seeds, connections));
  const SearchProgress progress(stderr, "ports");
  fabric::PortPlan ports = fabric::plan_ports(routes, seeds, connections, {.seed = options.seed});
  for (std::size_t i = 0; i < connections.size(); ++i)
    at(connections, i).flow.from_port = ports.ports[i];
  REGATTA_TRY(planned, link_sharing(graph, routes, seeds, connections));
  return Plan{.pairs = std::move(pairs),
              .ports = std::move(ports),
              .planned = std::move(planned),
              .by_chance = std::move(by_chance)};
}

int ports(const PortsOptions& options) {
  const OutputFile table{"--out", options.out};
  if (const Status good = check_outputs({table}, {options.cluster, options.pairs}); !good)
    return report_error(good.error());
  const auto cluster = load_cluster(options.cluster);
  if (!cluster) return report_error(cluster.error());
  if (cluster->fabric.tiers == 0)
    return report_error(
        {Code::kInvalidInput,
         fmt::format("cluster {} has no fabric; add one to its file", cluster->name)});
  const topo::Graph graph = topo::build_graph(*cluster);
  const auto plan = plan_of(*cluster, graph, options);
  if (!plan) return report_error(plan.error());
  const report::PortPlanReport shown{graph, plan->pairs, plan->ports, plan->planned,
                                     plan->by_chance};
  OutputFiles outputs;
  outputs.add(table, [&] { return report::port_plan_csv(shown); });
  if (const Status written = outputs.write(); !written) return report_error(written.error());
  if (options.json) {
    fmt::print("{}\n", report::port_plan_json(shown).dump(2));
    return 0;
  }
  fmt::print("{}", report::port_plan_text(shown));
  if (!options.out.empty()) fmt::print("written: {}\n", options.out);
  return 0;
}

}  // namespace

void add_fabric_ports(CLI::App& fabric, int& exit_status) {
  const auto options = std::make_shared<PortsOptions>();
  CLI::App* command = add_command(
      fabric, "ports", "Choose source ports that spread connections over links",
      "regatta fabric ports examples/cluster.yaml --ring --connections 2 --out ports.csv",
      [options, &exit_status] { exit_status = ports(*options); });
  command->add_option("CLUSTER", options->cluster, "Cluster file")->required()->check(not_empty());
  auto* pairs =
      command->add_option("--pairs", options->pairs, "Pairs of NICs, a line each: s0.nic0 s1.nic0")
          ->type_name("FILE")
          ->check(not_empty());
  auto* ring =
      command->add_flag("--ring", options->ring, "Each server to the next one, on every NIC")
          ->excludes(pairs);
  command
      ->add_flag("--permutation", options->permutation,
                 "A random permutation of the servers, on every NIC")
      ->excludes(pairs)
      ->excludes(ring);
  command->add_option("--connections", options->connections, "Connections per pair")
      ->type_name("K")
      ->capture_default_str()
      ->check(whole_number(1, 64));
  command->add_option("--seed", options->seed, "Seed of the permutation and of the search")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(0, 1'000'000'000));
  command->add_option("--out", options->out, "Write the table as CSV")
      ->type_name("FILE")
      ->check(not_empty());
  command->add_flag("--json", options->json, "Print JSON");
}

}  // namespace regatta::cli
