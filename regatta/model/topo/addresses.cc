#include "regatta/model/topo/addresses.h"

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/stats.h"

namespace regatta::topo {
namespace {

constexpr std::uint32_t kFirstAddress = 0x0a400000;  // 10.64.0.0

}  // namespace

std::uint32_t address_of(LinkId link, bool is_end_b) {
  REGATTA_CHECK(link.index() < kMaxAddressedLinks);
  return kFirstAddress + 2 * static_cast<std::uint32_t>(link.value) + (is_end_b ? 1U : 0U);
}

std::optional<LinkId> link_of(std::uint32_t address) {
  const std::uint32_t offset = address - kFirstAddress;
  if (address < kFirstAddress || offset / 2 >= kMaxAddressedLinks) return std::nullopt;
  return LinkId{static_cast<int>(offset / 2)};
}

std::string address_text(std::uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24U, (address >> 16U) & 255U, (address >> 8U) & 255U,
                     address & 255U);
}

std::uint32_t hash_seed(std::string_view cluster, std::string_view node) {
  const std::uint32_t hash = fnv1a_32(node, fnv1a_32("/", fnv1a_32(cluster)));
  return hash == 0 ? 1 : hash;  // 0 means the key that all namespaces of a kernel share
}

std::vector<std::uint32_t> hash_seeds(const Cluster& cluster, const Graph& graph) {
  std::vector<std::uint32_t> seeds;
  seeds.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes)
    seeds.push_back(hash_seed(cluster.name, node.name));
  return seeds;
}

}  // namespace regatta::topo
