#include "regatta/app/cli/internal/deadlock_proof.h"

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/deadlock.h"

namespace regatta::cli {

DeadlockProof prove_deadlock(const topo::Cluster& cluster, const topo::Graph& graph,
                             const fabric::Routes& routes, const fabric::DependencyCycle& circle) {
  const auto witness =
      fabric::find_deadlock_witness(graph, routes, topo::hash_seeds(cluster, graph), circle);
  if (!witness) {
    return {.text = fmt::format("not brought about: {}\n", witness.error().message),
            .json = {{"deadlocks", false}, {"reason", witness.error().message}}};
  }
  nlohmann::json json = {{"deadlocks", !witness->deadlock.empty()},
                         {"messages", witness->messages},
                         {"message_bytes", witness->bytes.value},
                         {"arrived", witness->arrived}};
  if (witness->deadlock.empty()) {
    return {.text = fmt::format("not brought about: all {} messages of {} that were sent over it "
                                "arrive\n",
                                witness->messages, format_bytes(witness->bytes)),
            .json = std::move(json)};
  }
  std::vector<std::string> links;
  for (const std::uint32_t link : witness->deadlock)
    links.push_back(topo::directed_link_name(graph, link));
  json["still_s"] = witness->quiescent_at.value;
  json["links"] = links;
  return {
      .text = fmt::format(
          "brought about packet by packet: of {} messages of {} that go over "
          "it {} never arrive; from {} on nothing moves, and these wait for each other:\n  {}\n",
          witness->messages, format_bytes(witness->bytes), witness->messages - witness->arrived,
          format_seconds(witness->quiescent_at), join(links, ", ")),
      .json = std::move(json)};
}

}  // namespace regatta::cli
