// `regatta fabric check`: whether the lossless links of a cluster can wait for each other in a
// circle, as it is and after failures.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/deadlock_proof.h"
#include "regatta/app/cli/internal/fabric_check_text.h"
#include "regatta/app/cli/internal/fabric_command.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/search_progress.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/deadlock.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kSets = 100'000;

struct CheckOptions {
  std::string cluster;
  std::string routes;  // a file; empty: the shortest ways
  int failures = 0;    // up to so many at once
  std::optional<std::size_t> sets;
  std::optional<std::uint64_t> seed;
  bool proves = false;
  bool json = false;
};

FabricCheckResult look(const topo::Graph& graph, const fabric::Routes& routes,
                       const CheckOptions& options, SearchProgress& progress) {
  progress.set_title("following what waits for what");
  FabricCheckResult finding{
      .now = fabric::check_deadlock(graph, routes), .loop = {}, .after = {}, .routes_after = {}};
  // Its links wait for each other, so that without a circle there is none.
  if (finding.now.cycle && !options.routes.empty()) finding.loop = find_loop(graph, routes);
  for (int at_once = 1; at_once <= options.failures && !finding.has_cycle(); ++at_once) {
    const fabric::FailureOptions how{
        .at_once = at_once,
        .most_sets = options.sets.value_or(kSets),
        .seed = options.seed.value_or(1),
        .progress = [&](std::size_t done, std::size_t all) {
          if (done % 64 == 0)
            progress.set_title(fmt::format("failures, {} at once: {} of {}", at_once, done, all));
        }};
    if (options.routes.empty())
      finding.after.push_back({at_once, fabric::check_failures(graph, how)});
    else
      finding.routes_after.push_back({at_once, fabric::check_route_failures(graph, routes, how)});
  }
  return finding;
}

// Of the circle that was found, if one was.
DeadlockProof prove(const topo::Cluster& cluster, const topo::Graph& graph,
                    const fabric::Routes& routes, const FabricCheckResult& finding) {
  if (finding.now.cycle) return prove_deadlock(cluster, graph, routes, *finding.now.cycle);
  const fabric::FailureCheck& check = finding.after.back().check;
  const topo::Graph left = fabric::without(graph, *check.failed);
  return prove_deadlock(cluster, left, fabric::Routes(left), *check.cycle);
}

Result<fabric::Routes> load_routes(const topo::Graph& graph, const std::string& path) {
  if (path.empty()) return fabric::Routes(graph);
  const auto text = os::read_file(path, os::kTextFileMost);
  if (!text) return Error{Code::kInvalidInput, text.error().message + "; check the path"};
  return fabric::parse_routes(graph, *text, path);
}

struct Checked {
  topo::Graph graph;
  fabric::Routes routes;
  FabricCheckResult finding;
  DeadlockProof proof;
};

Status check_flags(const CheckOptions& options) {
  if (options.failures > 1) return {};
  const auto means_nothing = [](const char* flag) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}: sets are drawn of two failures at once and more; add --failures "
                             "2, or leave it out",
                             flag)};
  };
  if (options.sets) return means_nothing("--sets");
  if (options.seed) return means_nothing("--seed");
  return {};
}

Result<Checked> check_cluster(const CheckOptions& options) {
  REGATTA_TRY_DO(check_flags(options));
  // Large fabrics take minutes: each part of the work is told.
  SearchProgress progress(stderr, "reading " + printable(options.cluster, 40));
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  topo::Graph graph = topo::build_graph(cluster);
  progress.set_title("finding the ways of traffic");
  REGATTA_TRY(routes, load_routes(graph, options.routes));
  FabricCheckResult finding = look(graph, routes, options, progress);
  DeadlockProof proof;
  if (options.proves && finding.has_cycle()) {
    progress.set_title("sending traffic over the circle");
    proof = prove(cluster, graph, routes, finding);
  }
  return Checked{std::move(graph), std::move(routes), std::move(finding), std::move(proof)};
}

int check(const CheckOptions& options) {
  const auto checked = check_cluster(options);
  if (!checked) return report_error(checked.error());
  const auto& [graph, routes, finding, proof] = *checked;
  if (options.json) {
    nlohmann::json all = fabric_check_json(graph, routes, finding);
    if (!proof.json.is_null()) all["proof"] = proof.json;
    fmt::print("{}\n", all.dump(2));
  } else {
    print_fabric_check(graph, routes, finding);
    fmt::print("{}", proof.text);
    if (options.proves && !finding.has_cycle())
      fmt::print("nothing to bring about: there is no circle\n");
  }
  return finding.has_cycle() ? 1 : 0;
}

}  // namespace

void add_fabric_check(CLI::App& fabric, int& exit_status) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* command = add_command(
      fabric, "check", "Prove that pauses cannot deadlock the fabric, or show how they can",
      "regatta fabric check examples/cluster.yaml --failures 2",
      [options, &exit_status] { exit_status = check(*options); });
  command->add_option("CLUSTER", options->cluster, "Cluster file")->required()->check(not_empty());
  command
      ->add_option("--routes", options->routes,
                   "Routes to check instead of the shortest ways (docs/formats/routes.md)")
      ->type_name("FILE")
      ->check(not_empty());
  command
      ->add_option("--failures", options->failures,
                   "Also after failures of links and switches, up to so many at once")
      ->type_name("K")
      ->check(whole_number(1, 8));
  command
      ->add_option("--sets", options->sets,
                   "Of more sets of failures at once than this, draw so many (default: 100000)")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000'000));
  command->add_option("--seed", options->seed, "Of the draw (default: 1)")
      ->type_name("N")
      ->check(whole_number(0, 1'000'000'000));
  command->add_flag("--prove", options->proves,
                    "Send traffic over a circle that was found, packet by packet, until it stops");
  command->add_flag("--json", options->json, "Print JSON");
}

}  // namespace regatta::cli
