#include "regatta/app/cli/internal/fabric_check_text.h"

#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/app/cli/internal/pluralized.h"
#include "regatta/base/core/text.h"
#include "regatta/model/topo/graph_names.h"

namespace regatta::cli {
namespace {

using nlohmann::json;

// A link of a circle, as a reader wants it.
struct Wait {
  std::string link;
  std::string from;
  std::string to;
  std::string cause;  // the leaf whose traffic comes over it and goes on over the next one
};

std::vector<Wait> waits_of(const topo::Graph& graph, const fabric::Routes& routes,
                           const fabric::DependencyCycle& circle) {
  std::vector<Wait> waits;
  for (std::size_t i = 0; i < circle.size(); ++i) {
    const auto cause =
        fabric::cause_of_dependency(graph, routes, circle[i], circle[(i + 1) % circle.size()]);
    waits.push_back({.link = graph.links[circle[i] / 2].name,
                     .from = graph.nodes[fabric::tail_of(graph, circle[i]).index()].name,
                     .to = graph.nodes[fabric::head_of(graph, circle[i]).index()].name,
                     .cause = cause ? graph.nodes[cause->index()].name : ""});
  }
  return waits;
}

std::vector<std::string> names_of(const topo::Graph& graph, const fabric::FailureSet& failed) {
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
  return waits_of(left, fabric::Routes(left), *check.cycle);
}

void print_cycle(const std::vector<Wait>& waits) {
  std::vector<std::vector<std::string>> rows = {{"link", "from", "to", "full with traffic to"}};
  for (const Wait& wait : waits)
    rows.push_back({wait.link, wait.from, wait.to, wait.cause});
  fmt::print("{}", format_table(rows));
  fmt::print("each link waits for the next one, the last one for the first\n");
}

std::vector<std::string> loop_names(const topo::Graph& graph, const fabric::RouteLoop& loop) {
  std::vector<std::string> names;
  for (const std::uint32_t link : loop.links)
    names.push_back(topo::directed_link_name(graph, link));
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
  if (now.cycle) {
    fmt::print("deadlock possible: a circle of {}\n\n", pluralized(now.cycle->size(), "link"));
    print_cycle(waits_of(graph, routes, *now.cycle));
    return;
  }
  if (now.links == 0) {
    fmt::print("no deadlock: no switch is cabled to another, so nothing waits\n");
    return;
  }
  fmt::print("no deadlock: {}, {} between them, no circle\n", pluralized(now.links, "link"),
             pluralized(now.dependencies, "wait"));
  std::vector<std::string> layers;
  for (const std::size_t links : now.layers)
    layers.push_back(std::to_string(links));
  fmt::print("proof: {} of {} links; each link waits only for links of later layers\n",
             pluralized(layers.size(), "layer"), join(layers, ", "));
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
                       pluralized(at_once, "failure"));
  return fmt::format("{} at once: {} looked at", pluralized(at_once, "failure"),
                     check.is_sample ? fmt::format("{} drawn of {:.4g}", check.checked, check.sets)
                                     : fmt::format("{}{:.0f}", all, check.sets));
}

void print_after(const topo::Graph& graph, const RouteCheckResult& after) {
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

void print_after(const topo::Graph& graph, const FailureCheckResult& after) {
  const fabric::FailureCheck& check = after.check;
  if (check.sets < 1) {
    fmt::print("\n{}\n", sets_text(after.at_once, check));
    return;
  }
  fmt::print("\n{}; {} led traffic new ways, {} cut leaves off\n", sets_text(after.at_once, check),
             check.rerouted, check.unreachable);
  if (!check.cycle) {
    fmt::print("no deadlock: no circle after any of them\n");
    return;
  }
  fmt::print("deadlock possible after {} failed: a circle of {}\n\n",
             join(names_of(graph, *check.failed), " and "),
             pluralized(check.cycle->size(), "link"));
  print_cycle(waits_after(graph, check));
}

json cycle_to_json(const std::vector<Wait>& waits) {
  json circle = json::array();
  for (const Wait& wait : waits)
    circle.push_back(
        {{"link", wait.link}, {"from", wait.from}, {"to", wait.to}, {"traffic_to", wait.cause}});
  return circle;
}

json route_finding_to_json(const topo::Graph& graph, const RouteCheckResult& after) {
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

}  // namespace

void print_fabric_check(const topo::Graph& graph, const fabric::Routes& routes,
                        const FabricCheckResult& finding) {
  print_now(graph, routes, finding.now);
  if (finding.loop) print_loop(graph, *finding.loop);
  if (finding.now.links == 0) {
    if (!finding.after.empty() || !finding.routes_after.empty())
      fmt::print("no failure to look at: there is no cable between switches that could fail\n");
    return;
  }
  for (const FailureCheckResult& after : finding.after)
    print_after(graph, after);
  for (const RouteCheckResult& after : finding.routes_after)
    print_after(graph, after);
}

nlohmann::json fabric_check_json(const topo::Graph& graph, const fabric::Routes& routes,
                                 const FabricCheckResult& finding) {
  json all = {{"has_circle", finding.has_cycle()},
              {"links", finding.now.links},
              {"waits", finding.now.dependencies},
              {"bounces", finding.now.bounces},
              {"layers", finding.now.layers}};
  if (finding.now.cycle) all["circle"] = cycle_to_json(waits_of(graph, routes, *finding.now.cycle));
  if (finding.loop)
    all["loop"] = {{"leaf", graph.nodes[finding.loop->leaf.index()].name},
                   {"links", loop_names(graph, *finding.loop)}};
  all["failures"] = json::array();
  for (const FailureCheckResult& after : finding.after) {
    const fabric::FailureCheck& check = after.check;
    json one = {{"at_once", after.at_once},
                {"sets", check.sets},
                {"checked", check.checked},
                {"is_sample", check.is_sample},
                {"rerouted", check.rerouted},
                {"cut_off", check.unreachable},
                {"has_circle", check.cycle.has_value()}};
    if (check.cycle) {
      one["failed"] = names_of(graph, *check.failed);
      one["circle"] = cycle_to_json(waits_after(graph, check));
    }
    all["failures"].push_back(std::move(one));
  }
  for (const RouteCheckResult& after : finding.routes_after)
    all["failures"].push_back(route_finding_to_json(graph, after));
  return all;
}

}  // namespace regatta::cli
