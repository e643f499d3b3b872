// `regatta fabric check`: whether the lossless links of a cluster can wait for each other in a
// circle, as it is and after failures.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/cli/arguments.h"
#include "regatta/cli/counted.h"
#include "regatta/cli/fabric_command.h"
#include "regatta/cli/fabric_proof.h"
#include "regatta/cli/load.h"
#include "regatta/cli/search_progress.h"
#include "regatta/core/text.h"
#include "regatta/fabric/deadlock.h"
#include "regatta/fabric/failures.h"
#include "regatta/fabric/route_failures.h"
#include "regatta/fabric/route_loops.h"
#include "regatta/fabric/routes_text.h"
#include "regatta/os/file.h"
#include "regatta/topo/graph.h"
#include "regatta/topo/graph_names.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kSets = 100'000;

struct Options {
  std::string cluster;
  std::string routes;  // a file; empty: the shortest ways
  int failures = 0;    // up to so many at once
  std::optional<std::size_t> sets;
  std::optional<std::uint64_t> seed;
  bool proves = false;
  bool json = false;
};

// What was found of so many failures at once; 0: of the cluster as it is.
struct FailureFinding {
  int at_once = 0;
  fabric::FailureCheck check;
};

// The same of routes that somebody wrote.
struct RouteFinding {
  int at_once = 0;
  fabric::RouteFailureCheck check;
};

struct Finding {
  fabric::DeadlockCheck now;
  std::optional<fabric::RouteLoop> loop;   // of given routes
  std::vector<FailureFinding> after;       // by the number of failures, up to the first circle
  std::vector<RouteFinding> routes_after;  // the same with given routes, which make none

  bool has_circle() const { return now.circle || (!after.empty() && after.back().check.circle); }
};

// A link of a circle, as a reader wants it.
struct Wait {
  std::string link;
  std::string from;
  std::string to;
  std::string cause;  // the leaf whose traffic comes over it and goes on over the next one
};

std::vector<Wait> waits_of(const topo::Graph& graph, const fabric::Routes& routes,
                           const fabric::Circle& circle) {
  std::vector<Wait> waits;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const topo::Link& link = graph.links[circle[i] / 2];
    const bool forward = circle[i] % 2 == 0;
    const auto cause =
        fabric::cause_of_wait(graph, routes, circle[i], circle[(i + 1) % circle.size()]);
    waits.push_back({.link = link.name,
                     .from = graph.nodes[(forward ? link.a : link.b).index()].name,
                     .to = graph.nodes[(forward ? link.b : link.a).index()].name,
                     .cause = cause ? graph.nodes[cause->index()].name : ""});
  }
  return waits;
}

std::vector<std::string> names_of(const topo::Graph& graph, const fabric::Failed& failed) {
  std::vector<std::string> names;
  for (const LinkId link : failed.links)
    names.push_back(graph.links[link.index()].name);
  for (const NodeId node : failed.switches)
    names.push_back(graph.nodes[node.index()].name);
  return names;
}

// The waits of a circle after failures.
std::vector<Wait> waits_after(const topo::Graph& graph, const fabric::FailureCheck& check) {
  const topo::Graph left = fabric::without(graph, *check.failed);
  return waits_of(left, fabric::Routes(left), *check.circle);
}

Finding look(const topo::Graph& graph, const fabric::Routes& routes, const Options& options,
             SearchProgress& progress) {
  progress.say("following what waits for what");
  Finding finding{
      .now = fabric::check_deadlock(graph, routes), .loop = {}, .after = {}, .routes_after = {}};
  // Its links wait for each other, so that without a circle there is none.
  if (finding.now.circle && !options.routes.empty()) finding.loop = find_loop(graph, routes);
  for (int at_once = 1; at_once <= options.failures && !finding.has_circle(); ++at_once) {
    const fabric::FailureOptions how{
        .at_once = at_once,
        .most_sets = options.sets.value_or(kSets),
        .seed = options.seed.value_or(1),
        .progress = [&](std::size_t done, std::size_t all) {
          if (done % 64 == 0)
            progress.say(fmt::format("failures, {} at once: {} of {}", at_once, done, all));
        }};
    if (options.routes.empty())
      finding.after.push_back({at_once, fabric::check_failures(graph, how)});
    else
      finding.routes_after.push_back({at_once, fabric::check_route_failures(graph, routes, how)});
  }
  return finding;
}

void print_circle(const std::vector<Wait>& waits) {
  std::vector<std::vector<std::string>> rows = {{"link", "from", "to", "full with traffic to"}};
  for (const Wait& wait : waits)
    rows.push_back({wait.link, wait.from, wait.to, wait.cause});
  fmt::print("{}", format_table(rows));
  fmt::print("each link waits for the next one, the last one for the first\n");
}

std::vector<std::string> loop_names(const topo::Graph& graph, const fabric::RouteLoop& loop) {
  std::vector<std::string> names;
  for (const std::uint32_t link : loop.links)
    names.push_back(topo::up_or_down(graph, link));
  return names;
}

void print_loop(const topo::Graph& graph, const fabric::RouteLoop& loop) {
  fmt::print(
      "\nthe routes lead in a loop: what goes to {} and comes to {} goes round and round "
      "and never arrives\n",
      graph.nodes[loop.leaf.index()].name, join(loop_names(graph, loop), ", "));
}

void print_now(const topo::Graph& graph, const fabric::Routes& routes,
               const fabric::DeadlockCheck& now) {
  if (now.circle) {
    fmt::print("deadlock possible: a circle of {}\n\n", counted(now.circle->size(), "link"));
    print_circle(waits_of(graph, routes, *now.circle));
    return;
  }
  if (now.links == 0) {
    fmt::print("no deadlock: no switch is cabled to another, so nothing waits\n");
    return;
  }
  fmt::print("no deadlock: {}, {} between them, no circle\n", counted(now.links, "link"),
             counted(now.waits, "wait"));
  std::vector<std::string> layers;
  for (const std::size_t links : now.layers)
    layers.push_back(std::to_string(links));
  fmt::print("proof: {} of {} links; each link waits only for links of later layers\n",
             counted(layers.size(), "layer"), join(layers, ", "));
  if (now.bounces == 0) {
    fmt::print("all ways go up, then down\n");
  } else {
    fmt::print("{} of the waits lead down a tier and up again\n", now.bounces);
  }
}

// "1 failure at once: all 14 looked at".
// Also where fewer parts are there than are to fail.
template <typename Check>
std::string sets_text(int at_once, const Check& check) {
  const std::string all = check.sets > static_cast<double>(check.checked)
                              ? fmt::format("{} of ", check.checked)
                              : "all ";
  if (check.sets < 1)
    return fmt::format("{} at once: not so many links and switches are there",
                       counted(at_once, "failure"));
  return fmt::format("{} at once: {} looked at", counted(at_once, "failure"),
                     check.is_sample ? fmt::format("{} drawn of {:.4g}", check.checked, check.sets)
                                     : fmt::format("{}{:.0f}", all, check.sets));
}

void print_after(const topo::Graph& graph, const RouteFinding& after) {
  const fabric::RouteFailureCheck& check = after.check;
  if (check.sets < 1) {
    fmt::print("\n{}\n", sets_text(after.at_once, check));
    return;
  }
  fmt::print("\n{}; after {} of them routes have no way left\n", sets_text(after.at_once, check),
             check.losing);
  fmt::print("no deadlock: switches that leave out what failed wait for fewer links\n");
  for (const fabric::LostRoute& lost : check.lost)
    fmt::print("  after {} failed: {} has no way to {}\n",
               join(names_of(graph, lost.failed), " and "), graph.nodes[lost.at.index()].name,
               graph.nodes[lost.to.index()].name);
  if (check.losing > check.lost.size())
    fmt::print("  ... {} more\n", check.losing - check.lost.size());
}

void print_after(const topo::Graph& graph, const FailureFinding& after) {
  const fabric::FailureCheck& check = after.check;
  if (check.sets < 1) {
    fmt::print("\n{}\n", sets_text(after.at_once, check));
    return;
  }
  fmt::print("\n{}; {} led traffic new ways, {} cut leaves off\n", sets_text(after.at_once, check),
             check.rerouted, check.unreachable);
  if (!check.circle) {
    fmt::print("no deadlock: no circle after any of them\n");
    return;
  }
  fmt::print("deadlock possible after {} failed: a circle of {}\n\n",
             join(names_of(graph, *check.failed), " and "), counted(check.circle->size(), "link"));
  print_circle(waits_after(graph, check));
}

json circle_to_json(const std::vector<Wait>& waits) {
  json circle = json::array();
  for (const Wait& wait : waits)
    circle.push_back(
        {{"link", wait.link}, {"from", wait.from}, {"to", wait.to}, {"traffic_to", wait.cause}});
  return circle;
}

json route_finding_to_json(const topo::Graph& graph, const RouteFinding& after) {
  json lost = json::array();
  for (const fabric::LostRoute& one : after.check.lost)
    lost.push_back({{"failed", names_of(graph, one.failed)},
                    {"switch", graph.nodes[one.at.index()].name},
                    {"leaf", graph.nodes[one.to.index()].name}});
  return {{"at_once", after.at_once},
          {"sets", after.check.sets},
          {"checked", after.check.checked},
          {"is_sample", after.check.is_sample},
          {"losing", after.check.losing},
          {"lost", lost},
          {"has_circle", false}};
}

json finding_to_json(const topo::Graph& graph, const fabric::Routes& routes,
                     const Finding& finding) {
  json all = {{"has_circle", finding.has_circle()},
              {"links", finding.now.links},
              {"waits", finding.now.waits},
              {"bounces", finding.now.bounces},
              {"layers", finding.now.layers}};
  if (finding.now.circle)
    all["circle"] = circle_to_json(waits_of(graph, routes, *finding.now.circle));
  if (finding.loop)
    all["loop"] = {{"leaf", graph.nodes[finding.loop->leaf.index()].name},
                   {"links", loop_names(graph, *finding.loop)}};
  all["failures"] = json::array();
  for (const FailureFinding& after : finding.after) {
    const fabric::FailureCheck& check = after.check;
    json one = {{"at_once", after.at_once},
                {"sets", check.sets},
                {"checked", check.checked},
                {"is_sample", check.is_sample},
                {"rerouted", check.rerouted},
                {"cut_off", check.unreachable},
                {"has_circle", check.circle.has_value()}};
    if (check.circle) {
      one["failed"] = names_of(graph, *check.failed);
      one["circle"] = circle_to_json(waits_after(graph, check));
    }
    all["failures"].push_back(std::move(one));
  }
  for (const RouteFinding& after : finding.routes_after)
    all["failures"].push_back(route_finding_to_json(graph, after));
  return all;
}

void print_finding(const topo::Graph& graph, const fabric::Routes& routes, const Finding& finding) {
  print_now(graph, routes, finding.now);
  if (finding.loop) print_loop(graph, *finding.loop);
  if (finding.now.links == 0) {
    if (!finding.after.empty() || !finding.routes_after.empty())
      fmt::print("no failure to look at: there is no cable between switches that could fail\n");
    return;
  }
  for (const FailureFinding& after : finding.after)
    print_after(graph, after);
  for (const RouteFinding& after : finding.routes_after)
    print_after(graph, after);
}

// Of the circle that was found, if one was.
FabricProof prove(const topo::Cluster& cluster, const topo::Graph& graph,
                  const fabric::Routes& routes, const Finding& finding) {
  if (finding.now.circle) return prove_circle(cluster, graph, routes, *finding.now.circle);
  const fabric::FailureCheck& check = finding.after.back().check;
  const topo::Graph left = fabric::without(graph, *check.failed);
  return prove_circle(cluster, left, fabric::Routes(left), *check.circle);
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
  Finding finding;
  FabricProof proof;
};

Status check_flags(const Options& options) {
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

Result<Checked> check_cluster(const Options& options) {
  REGATTA_TRY_DO(check_flags(options));
  // Large fabrics take minutes: each part of the work is told.
  SearchProgress progress(stderr, "reading " + printable(options.cluster, 40));
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  topo::Graph graph = topo::build_graph(cluster);
  progress.say("finding the ways of traffic");
  REGATTA_TRY(routes, load_routes(graph, options.routes));
  Finding finding = look(graph, routes, options, progress);
  FabricProof proof;
  if (options.proves && finding.has_circle()) {
    progress.say("sending traffic over the circle");
    proof = prove(cluster, graph, routes, finding);
  }
  return Checked{std::move(graph), std::move(routes), std::move(finding), std::move(proof)};
}

int check(const Options& options) {
  const auto checked = check_cluster(options);
  if (!checked) return report_error(checked.error());
  const auto& [graph, routes, finding, proof] = *checked;
  if (options.json) {
    json all = finding_to_json(graph, routes, finding);
    if (!proof.json.is_null()) all["proof"] = proof.json;
    fmt::print("{}\n", all.dump(2));
  } else {
    print_finding(graph, routes, finding);
    fmt::print("{}", proof.text);
    if (options.proves && !finding.has_circle())
      fmt::print("nothing to bring about: there is no circle\n");
  }
  return finding.has_circle() ? 1 : 0;
}

}  // namespace

void add_fabric_check(CLI::App& fabric, int& exit_status) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      fabric, "check", "Prove that pauses cannot deadlock the fabric, or show how they can",
      "regatta fabric check examples/cluster.yaml --failures 2",
      [options, &exit_status] { exit_status = check(*options); });
  command->add_option("CLUSTER", options->cluster, "Cluster file")->required()->check(not_empty());
  command
      ->add_option("--routes", options->routes,
                   "Routes to check instead of the shortest ways, a line each: switch, leaf (or "
                   "*), links")
      ->type_name("FILE")
      ->check(not_empty());
  command
      ->add_option("--failures", options->failures,
                   "Also after each failure of links and switches, up to so many at once; with "
                   "--routes: which of these lose their way")
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
