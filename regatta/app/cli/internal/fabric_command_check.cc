// `regatta fabric check`: whether the lossless links of a cluster can wait for each other in a
// cycle, as it is and after failures.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/fabric_command.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/app/report/fabric_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kSets = 100'000;

struct CheckOptions {
  std::string cluster;
  std::string routes;  // a file; empty: the shortest paths
  int failures = 0;    // up to so many at once
  std::optional<std::size_t> sets;
  std::optional<std::uint64_t> seed;
  bool proves = false;
  bool json = false;
};

report::FabricCheckResult check_fabric(const topo::Graph& graph, const fabric::Routes& routes,
                                       const CheckOptions& options, SearchProgress& progress) {
  progress.set_title("following dependencies between links");
  report::FabricCheckResult result{
      .now = fabric::check_deadlock(graph, routes), .loop = {}, .after = {}, .routes_after = {}};
  // The links of a loop wait for each other: without a cycle there is no loop.
  if (result.now.cycle && !options.routes.empty()) result.loop = find_loop(graph, routes);
  for (int at_once = 1; at_once <= options.failures && !result.has_cycle(); ++at_once) {
    const fabric::FailureOptions how{
        .at_once = at_once,
        .most_sets = options.sets.value_or(kSets),
        .seed = options.seed.value_or(1),
        .progress = [&](std::size_t done, std::size_t all) {
          if (done % 64 == 0)
            progress.set_title(
                fmt::format("{} simultaneous failures: {} of {}", at_once, done, all));
        }};
    if (options.routes.empty())
      result.after.push_back({at_once, fabric::check_failures(graph, how)});
    else
      result.routes_after.push_back({at_once, fabric::check_route_failures(graph, routes, how)});
  }
  return result;
}

// Traffic over the cycle that was found.
Result<fabric::DeadlockWitness> prove_deadlock(const topo::Cluster& cluster,
                                               const topo::Graph& graph,
                                               const fabric::Routes& routes,
                                               const report::FabricCheckResult& result) {
  if (result.now.cycle)
    return fabric::find_deadlock_witness(graph, routes, topo::hash_seeds(cluster, graph),
                                         *result.now.cycle);
  const fabric::FailureCheck& check = result.after.back().check;
  const topo::Graph left = fabric::without(graph, *check.failed);
  return fabric::find_deadlock_witness(left, fabric::Routes(left), topo::hash_seeds(cluster, left),
                                       *check.cycle);
}

Result<fabric::Routes> load_routes(const topo::Graph& graph, const std::string& path) {
  if (path.empty()) return fabric::Routes(graph);
  const auto text = os::read_text_file(path);
  if (!text) return Error{Code::kInvalidInput, text.error().message + "; check the path"};
  return fabric::parse_routes(graph, *text, path);
}

struct Checked {
  topo::Graph graph;
  fabric::Routes routes;
  report::FabricCheckResult result;
  std::optional<Result<fabric::DeadlockWitness>> proof;
};

Status check_flags(const CheckOptions& options) {
  if (options.failures > 1) return {};
  const auto means_nothing = [](const char* flag) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}: sets are drawn only of two or more simultaneous failures; add "
                             "--failures 2, or leave it out",
                             flag)};
  };
  if (options.sets) return means_nothing("--sets");
  if (options.seed) return means_nothing("--seed");
  return {};
}

Result<Checked> check_cluster(const CheckOptions& options) {
  REGATTA_TRY_DO(check_flags(options));
  // Large fabrics take minutes, so each part of the work has a title.
  SearchProgress progress(stderr, "reading " + printable(options.cluster, 40));
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  topo::Graph graph = topo::build_graph(cluster);
  progress.set_title("computing the routes");
  REGATTA_TRY(routes, load_routes(graph, options.routes));
  report::FabricCheckResult result = check_fabric(graph, routes, options, progress);
  std::optional<Result<fabric::DeadlockWitness>> proof;
  if (options.proves && result.has_cycle()) {
    progress.set_title("sending traffic over the cycle");
    proof = prove_deadlock(cluster, graph, routes, result);
  }
  return Checked{std::move(graph), std::move(routes), std::move(result), std::move(proof)};
}

int check(const CheckOptions& options) {
  const auto checked = check_cluster(options);
  if (!checked) return report_error(checked.error());
  const auto& [graph, routes, result, proof] = *checked;
  if (options.json) {
    nlohmann::json all = report::fabric_check_json(graph, routes, result);
    if (proof) all["proof"] = report::deadlock_proof_json(graph, *proof);
    fmt::print("{}\n", all.dump(2));
  } else {
    fmt::print("{}", report::fabric_check_text(graph, routes, result));
    if (options.proves) fmt::print("{}", report::deadlock_proof_text(graph, proof));
  }
  return result.has_cycle() ? 1 : 0;
}

}  // namespace

void add_fabric_check(CLI::App& fabric, int& exit_status) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      add_command(fabric, "check", "Prove that pauses cannot deadlock the fabric, or show a cycle",
                  "regatta fabric check examples/cluster.yaml --failures 2",
                  [options, &exit_status] { exit_status = check(*options); });
  command->add_option("CLUSTER", options->cluster, "Cluster file")->required()->check(not_empty());
  command
      ->add_option("--routes", options->routes,
                   "Routes to check instead of the shortest paths (docs/formats/routes.md)")
      ->type_name("FILE")
      ->check(not_empty());
  command
      ->add_option("--failures", options->failures,
                   "Also check after up to K failures of links and switches at once")
      ->type_name("K")
      ->check(whole_number(1, 8));
  command
      ->add_option("--sets", options->sets,
                   "Sets of failures to draw where there are more (default: 100000)")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000));
  command->add_option("--seed", options->seed, "Seed of the draw (default: 1)")
      ->type_name("N")
      ->check(whole_number(0, 1'000'000'000));
  command->add_flag("--prove", options->proves,
                    "Simulate traffic over a cycle that was found until it stops");
  command->add_flag("--json", options->json, "Print JSON");
}

}  // namespace regatta::cli
