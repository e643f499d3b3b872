// `regatta fabric ports`: source ports for connections, so that the switches' hashes lead them
// apart.
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
  fabric::NicPairs pairs;
  fabric::PortPlan ports;
  std::uint32_t most_by_chance = 0;  // with the ports that `pairs` has
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
                 "fabric ports: say who sends to whom with --pairs FILE, --ring or --permutation"};
  const auto text = os::read_file(options.pairs, os::kTextFileMost);
  if (!text) return Error{Code::kInvalidInput, text.error().message + "; check the path"};
  return fabric::parse_pairs(cluster, graph, options.connections, *text, options.pairs);
}

// The most connections over one link between two switches, with the ports of `pairs`. Fails with
// kInvalidInput when no path joins the ends of a pair.
Result<std::uint32_t> most_on_a_link(const topo::Graph& graph, const fabric::Routes& routes,
                                     std::span<const std::uint32_t> seeds,
                                     const fabric::NicPairs& pairs) {
  std::vector<std::uint32_t> flows(2 * graph.links.size(), 0);
  std::uint32_t most = 0;
  for (std::uint32_t pair = 0; pair < pairs.pairs.size(); ++pair) {
    const auto [from, to] = pairs.pairs[pair];
    for (std::uint32_t i = 0; i < pairs.connections; ++i) {
      const auto way =
          routes.path(from, to, fabric::EcmpNextHop{.flow = pairs.tuple(pair, i), .seeds = seeds});
      if (!way)
        return Error{Code::kInvalidInput,
                     fmt::format("no switch joins {} and {}; pair NICs of one plane",
                                 fabric::nic_name(graph, from), fabric::nic_name(graph, to))};
      for (const std::uint32_t link : *way)
        if (graph.links[link / 2].a_nic < 0) most = std::max(most, ++flows[link]);
    }
  }
  return most;
}

Result<Plan> plan_of(const topo::Cluster& cluster, const topo::Graph& graph,
                     const PortsOptions& options) {
  REGATTA_TRY(pairs, pairs_of(cluster, graph, options));
  const fabric::Routes routes(graph);
  const std::vector<std::uint32_t> seeds = topo::hash_seeds(cluster, graph);
  REGATTA_TRY(most, most_on_a_link(graph, routes, seeds, pairs));
  std::vector<fabric::PlannedConnection> connections;
  for (std::uint32_t pair = 0; pair < pairs.pairs.size(); ++pair)
    for (std::uint32_t i = 0; i < pairs.connections; ++i)
      connections.push_back({pairs.pairs[pair].from, pairs.pairs[pair].to, pairs.tuple(pair, i)});
  const SearchProgress progress(stderr, "ports");
  fabric::PortPlan ports = fabric::plan_ports(routes, seeds, connections, {.seed = options.seed});
  return Plan{.pairs = std::move(pairs), .ports = std::move(ports), .most_by_chance = most};
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
  const report::PortPlanReport shown{graph, plan->pairs, plan->ports, plan->most_by_chance};
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
