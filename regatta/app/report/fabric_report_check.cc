// Deadlocks of a fabric.
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/fabric_report.h"
#include "regatta/app/report/internal/link_names.h"
#include "regatta/app/report/internal/old_names.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using nlohmann::json;

// A link of a cycle and the leaf whose traffic makes it wait for the next link.
struct Dependency {
  std::string link;
  std::string from;
  std::string to;
  std::string cause;
};

std::vector<Dependency> dependencies_of(const topo::Graph& graph, const fabric::Routes& routes,
                                        const fabric::DependencyCycle& cycle) {
  std::vector<Dependency> dependencies;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const auto cause =
        fabric::cause_of_dependency(graph, routes, cycle[i], cycle[(i + 1) % cycle.size()]);
    dependencies.push_back({.link = graph.links[cycle[i] / 2].name,
                            .from = graph.nodes[fabric::tail_of(graph, cycle[i]).index()].name,
                            .to = graph.nodes[fabric::head_of(graph, cycle[i]).index()].name,
                            .cause = cause ? graph.nodes[cause->index()].name : ""});
  }
  return dependencies;
}

std::vector<std::string> names_of(const topo::Graph& graph, const fabric::FailureSet& failed) {
  std::vector<std::string> names;
  for (const LinkId link : failed.links)
    names.push_back(graph.links[link.index()].name);
  for (const NodeId node : failed.switches)
    names.push_back(graph.nodes[node.index()].name);
  return names;
}

// The waits of a cycle after failures.
std::vector<Dependency> dependencies_after(const topo::Graph& graph,
                                           const fabric::FailureCheck& check) {
  const topo::Graph left = fabric::without(graph, *check.failed);
  return dependencies_of(left, fabric::Routes(left), *check.cycle);
}

std::string cycle_table(const std::vector<Dependency>& dependencies) {
  std::vector<std::vector<std::string>> rows = {{"link", "from", "to", "filled by traffic to"}};
  for (const Dependency& one : dependencies)
    rows.push_back({one.link, one.from, one.to, one.cause});
  return format_table(rows) + "each link waits for the next one, the last one for the first\n";
}

std::string loop_text(const topo::Graph& graph, const fabric::RouteLoop& loop) {
  return fmt::format("\nthe routes contain a loop: traffic to {} on {} never arrives\n",
                     graph.nodes[loop.leaf.index()].name,
                     join(link_names(graph, loop.links), ", "));
}

std::string deadlock_text(const topo::Graph& graph, const fabric::Routes& routes,
                          const fabric::DeadlockCheck& now) {
  if (now.cycle)
    return fmt::format("deadlock possible: a cycle of {}\n\n",
                       pluralized(now.cycle->size(), "directed link")) +
           cycle_table(dependencies_of(graph, routes, *now.cycle));
  if (now.links == 0) return "no deadlock: no cable joins two switches\n";
  std::vector<std::string> layers;
  for (const std::size_t links : now.layers)
    layers.push_back(std::to_string(links));
  return fmt::format(
             "no deadlock: {} ({}), {} between them, no cycle\n"
             "proof: {} of {} directed links; each link waits only for links of later layers\n",
             pluralized(now.links, "directed link"), pluralized(now.links / 2, "cable"),
             pluralized(now.dependencies, "dependency", "dependencies"),
             pluralized(layers.size(), "layer"), join(layers, ", ")) +
         (now.bounces == 0
              ? "all paths go up, then down\n"
              : fmt::format("{} of the dependencies lead down a tier and up again\n", now.bounces));
}

// "1 failure at once: all 14 checked", "2 failures at once: 100 drawn of 4950 checked".
template <typename Check>
std::string sets_text(int at_once, const Check& check) {
  const std::string failures = pluralized(at_once, "failure") + " at once: ";
  if (check.sets < 1) return failures + "there are fewer links and switches";
  if (check.is_sample)
    return fmt::format("{}{} drawn of {:.4g} checked", failures, check.checked, check.sets);
  return check.sets > static_cast<double>(check.checked)
             ? fmt::format("{}{} of {:.0f} checked", failures, check.checked, check.sets)
             : fmt::format("{}all {:.0f} checked", failures, check.sets);
}

std::string after_text(const topo::Graph& graph, const RouteCheckResult& after) {
  const fabric::RouteFailureCheck& check = after.check;
  std::string text = "\n" + sets_text(after.at_once, check);
  if (check.sets < 1) return text + "\n";
  text += fmt::format(
      "; after {} of them a switch has no route left\n"
      "no deadlock: a failure only removes dependencies of given routes\n",
      check.losing);
  for (const fabric::LostRoute& lost : check.lost)
    text += fmt::format("  after {} failed: {} has no route to {}\n",
                        join(names_of(graph, lost.failed), " and "),
                        graph.nodes[lost.at.index()].name, graph.nodes[lost.to.index()].name);
  if (check.losing > check.lost.size())
    text += fmt::format("  ... {} more\n", check.losing - check.lost.size());
  return text;
}

std::string after_text(const topo::Graph& graph, const FailureCheckResult& after) {
  const fabric::FailureCheck& check = after.check;
  std::string text = "\n" + sets_text(after.at_once, check);
  if (check.sets < 1) return text + "\n";
  text += fmt::format("; {} changed paths of traffic, {} disconnected leaves\n", check.rerouted,
                      check.unreachable);
  if (!check.cycle) return text + "no deadlock: no cycle after any of them\n";
  return text +
         fmt::format("deadlock possible after {} failed: a cycle of {}\n\n",
                     join(names_of(graph, *check.failed), " and "),
                     pluralized(check.cycle->size(), "directed link")) +
         cycle_table(dependencies_after(graph, check));
}

json cycle_to_json(const std::vector<Dependency>& dependencies) {
  json cycle = json::array();
  for (const Dependency& one : dependencies)
    cycle.push_back(
        {{"link", one.link}, {"from", one.from}, {"to", one.to}, {"traffic_to", one.cause}});
  return cycle;
}

json route_result_to_json(const topo::Graph& graph, const RouteCheckResult& after) {
  json lost = json::array();
  for (const fabric::LostRoute& one : after.check.lost)
    lost.push_back({{"failed", names_of(graph, one.failed)},
                    {"switch", graph.nodes[one.at.index()].name},
                    {"leaf", graph.nodes[one.to.index()].name}});
  return {{"simultaneous", after.at_once},
          {"sets", after.check.sets},
          {"checked", after.check.checked},
          {"is_sample", after.check.is_sample},
          {"sets_losing_routes", after.check.losing},
          {"lost_routes", lost},
          {"has_cycle", false}};
}

}  // namespace

std::string fabric_check_text(const topo::Graph& graph, const fabric::Routes& routes,
                              const FabricCheckResult& result) {
  std::string text = deadlock_text(graph, routes, result.now);
  if (result.loop) text += loop_text(graph, *result.loop);
  if (result.now.links == 0) {
    if (!result.after.empty() || !result.routes_after.empty())
      text += "no failure to check: no cable joins two switches\n";
    return text;
  }
  for (const FailureCheckResult& after : result.after)
    text += after_text(graph, after);
  for (const RouteCheckResult& after : result.routes_after)
    text += after_text(graph, after);
  return text;
}

nlohmann::json fabric_check_json(const topo::Graph& graph, const fabric::Routes& routes,
                                 const FabricCheckResult& result) {
  json all = {{"has_cycle", result.has_cycle()},     {"directed_links", result.now.links},
              {"cables", result.now.links / 2},      {"dependencies", result.now.dependencies},
              {"down_up_turns", result.now.bounces}, {"layers", result.now.layers}};
  if (result.now.cycle)
    all["cycle"] = cycle_to_json(dependencies_of(graph, routes, *result.now.cycle));
  add_old_names(all, {{"has_cycle", "has_circle"},
                      {"directed_links", "links"},
                      {"dependencies", "waits"},
                      {"down_up_turns", "bounces"},
                      {"cycle", "circle"}});
  if (result.loop)
    all["loop"] = {{"leaf", graph.nodes[result.loop->leaf.index()].name},
                   {"links", link_names(graph, result.loop->links)}};
  all["failures"] = json::array();
  for (const FailureCheckResult& after : result.after) {
    const fabric::FailureCheck& check = after.check;
    json one = {{"simultaneous", after.at_once},
                {"sets", check.sets},
                {"checked", check.checked},
                {"is_sample", check.is_sample},
                {"rerouted", check.rerouted},
                {"disconnected", check.unreachable},
                {"has_cycle", check.cycle.has_value()}};
    if (check.cycle) {
      one["failed"] = names_of(graph, *check.failed);
      one["cycle"] = cycle_to_json(dependencies_after(graph, check));
    }
    all["failures"].push_back(std::move(one));
  }
  for (const RouteCheckResult& after : result.routes_after)
    all["failures"].push_back(route_result_to_json(graph, after));
  for (json& one : all["failures"])
    add_old_names(one, {{"simultaneous", "at_once"},
                        {"disconnected", "cut_off"},
                        {"has_cycle", "has_circle"},
                        {"cycle", "circle"},
                        {"sets_losing_routes", "losing"},
                        {"lost_routes", "lost"}});
  return all;
}

std::string deadlock_proof_text(const topo::Graph& graph,
                                const std::optional<Result<fabric::DeadlockWitness>>& proof) {
  if (!proof) return "nothing to prove: there is no cycle\n";
  const Result<fabric::DeadlockWitness>& witness = *proof;
  if (!witness) return fmt::format("not reproduced: {}\n", witness.error().message);
  if (witness->deadlock.empty())
    return fmt::format("not reproduced: all {} messages of {} over the cycle arrive\n",
                       witness->messages, format_bytes(witness->bytes));
  return fmt::format(
      "reproduced packet by packet: {} of {} messages of {} over the cycle never arrive; after {} "
      "nothing moves, and these links wait for each other:\n  {}\n",
      witness->messages - witness->arrived, witness->messages, format_bytes(witness->bytes),
      format_seconds(witness->quiescent_at), join(link_names(graph, witness->deadlock), ", "));
}

json deadlock_proof_json(const topo::Graph& graph, const Result<fabric::DeadlockWitness>& witness) {
  if (!witness) return {{"deadlocks", false}, {"reason", witness.error().message}};
  json proof = {{"deadlocks", !witness->deadlock.empty()},
                {"messages", witness->messages},
                {"message_bytes", witness->bytes.value},
                {"arrived", witness->arrived}};
  if (witness->deadlock.empty()) return proof;
  proof["quiescent_s"] = witness->quiescent_at.value;
  add_old_names(proof, {{"quiescent_s", "still_s"}});
  proof["links"] = link_names(graph, witness->deadlock);
  return proof;
}

}  // namespace regatta::report
