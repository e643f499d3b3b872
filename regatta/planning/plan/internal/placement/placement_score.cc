#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/placement.h"

namespace regatta::plan {
namespace {

std::string share_of(int part, int all) {
  return fmt::format("{:.0f} %", 100.0 * part / all);
}

// The widest place that a fabric has more than one of.
std::string within(const topo::Fabric& fabric, const fabric::HopScore& hops) {
  const int in_leaf = hops.in_server + hops.in_leaf;
  if (fabric.tiers < 2)
    return fmt::format("{} within servers", share_of(hops.in_server, hops.hops));
  const std::string leaf =
      fmt::format("{} below one leaf or within servers", share_of(in_leaf, hops.hops));
  if (fabric.tiers < 3) return leaf;
  return fmt::format("{} within an aggregation group, {}", share_of(hops.near(), hops.hops), leaf);
}

nlohmann::json hops_json(const fabric::HopScore& hops) {
  return {{"hops", hops.hops},
          {"in_server", hops.in_server},
          {"in_leaf", hops.in_leaf},
          {"in_group", hops.in_group},
          {"across", hops.across},
          {"links_per_hop", hops.links},
          {"collisions", hops.collisions}};
}

}  // namespace

PlacementScore score_placement(const topo::Cluster& cluster, const workload::ModelShape& model,
                               const workload::Strategy& strategy, const Placement& placement) {
  workload::Strategy known = strategy;
  known.dp *= known.cp;
  known.cp = 1;
  const std::vector<int> domains = scale_up_domains(cluster);
  PlacementScore score;
  double links = 0;
  for (const workload::ConcurrentSends& set : workload::concurrent_sends(model, known)) {
    std::vector<fabric::ServerHop> hops;
    for (const workload::RankSend& send : set.sends) {
      const ServerId from = placement[send.from.index()].server;
      const ServerId to = placement[send.to.index()].server;
      const bool is_joined = domains[from.index()] == domains[to.index()];
      hops.push_back({from, is_joined ? from : to});  // links of a domain are as those of a server
    }
    const fabric::HopScore one = fabric::score_hops(cluster, hops);
    score.sets.push_back({set.name, one});
    score.all.hops += one.hops;
    score.all.in_server += one.in_server;
    score.all.in_leaf += one.in_leaf;
    score.all.in_group += one.in_group;
    score.all.across += one.across;
    score.all.collisions += one.collisions;
    links += one.links * one.hops;
  }
  if (score.all.hops > 0) score.all.links = links / score.all.hops;
  return score;
}

std::string score_text(const topo::Cluster& cluster, const PlacementScore& score) {
  std::string text;
  for (const ConcurrentSendsScore& set : score.sets) {
    text += fmt::format("{}: {} hop{}, {}", set.name, set.hops.hops, set.hops.hops == 1 ? "" : "s",
                        within(cluster.fabric, set.hops));
    if (set.hops.collisions >= 0.05)
      text += fmt::format("; by chance {:.1f} of them meet another one on an uplink",
                          set.hops.collisions);
    text += "\n";
  }
  return text;
}

nlohmann::json score_json(const PlacementScore& score) {
  nlohmann::json sets = nlohmann::json::array();
  for (const ConcurrentSendsScore& set : score.sets) {
    nlohmann::json one = hops_json(set.hops);
    one["name"] = set.name;
    sets.push_back(std::move(one));
  }
  return {{"sets", sets}, {"all", hops_json(score.all)}};
}

}  // namespace regatta::plan
