#include "regatta/planning/plan/internal/search/server_orders.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "regatta/base/core/ids.h"

namespace regatta::plan {
namespace {

constexpr int kMostOrders = 24;

// The servers of each type, types as they first come in the cluster.
std::vector<ServerOrder> by_type(const topo::Cluster& cluster) {
  std::vector<ServerOrder> types;
  std::map<std::string, std::size_t> numbers;
  for (int s = 0; s < static_cast<int>(cluster.servers.size()); ++s) {
    const std::string& type = at(cluster.servers, s).type;
    const auto [found, is_new] = numbers.try_emplace(type, types.size());
    if (is_new) types.emplace_back();
    types[found->second].push_back(ServerId{s});
  }
  return types;
}

}  // namespace

std::vector<ServerOrder> type_orders(const topo::Cluster& cluster) {
  const std::vector<ServerOrder> types = by_type(cluster);
  std::vector<std::size_t> order(types.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<ServerOrder> orders;
  do {
    ServerOrder servers;
    for (const std::size_t type : order)
      servers.insert(servers.end(), types[type].begin(), types[type].end());
    orders.push_back(std::move(servers));
  } while (std::next_permutation(order.begin(), order.end()) &&
           static_cast<int>(orders.size()) < kMostOrders);
  return orders;
}

ServerOrder spread_order(const topo::Cluster& cluster, int stages) {
  const std::vector<ServerOrder> types = by_type(cluster);
  if (types.size() == 1 || stages == 1) return {};
  const auto count = static_cast<std::size_t>(stages);
  ServerOrder servers;
  for (std::size_t stage = 0; stage < count; ++stage) {
    for (const ServerOrder& type : types) {
      if (type.size() % count != 0) return {};
      const auto each = static_cast<std::ptrdiff_t>(type.size() / count);
      const auto first = type.begin() + static_cast<std::ptrdiff_t>(stage) * each;
      servers.insert(servers.end(), first, first + each);
    }
  }
  return servers;
}

}  // namespace regatta::plan
