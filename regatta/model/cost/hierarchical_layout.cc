#include "regatta/model/cost/hierarchical_layout.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "regatta/base/core/ids.h"
#include "regatta/model/cost/collective.h"

namespace regatta::cost {
namespace {

double direct_time(const std::vector<BytesPerSecond>& rates, const std::vector<double>& weights) {
  const auto others = static_cast<double>(rates.size()) - 2;
  double slowest = 0;
  for (std::size_t s = 0; s < rates.size(); ++s)
    slowest = std::max(slowest, (1 + others * weights[s]) / rates[s].value);
  return slowest;
}

bool are_alike(const std::vector<std::vector<int>>& rows) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const auto& row) { return row.size() == rows.front().size(); });
}

}  // namespace

std::vector<std::vector<int>> ranks_by_server(const RankLocations& sites) {
  std::map<int, std::size_t> row_of;
  std::vector<std::vector<int>> rows;
  for (std::size_t rank = 0; rank < sites.server.size(); ++rank) {
    const auto [row, is_new] = row_of.try_emplace(sites.server[rank], rows.size());
    if (is_new) rows.emplace_back();
    rows[row->second].push_back(static_cast<int>(rank));
  }
  return rows;
}

std::vector<double> balanced_link_shares(const std::vector<BytesPerSecond>& rates) {
  const auto others = static_cast<double>(rates.size()) - 2;
  const auto shares_within = [&](double time) {
    std::vector<double> shares;
    for (const BytesPerSecond rate : rates)
      shares.push_back(std::max(0.0, (time * rate.value - 1) / others));
    return shares;
  };
  const auto sum = [](const std::vector<double>& shares) {
    double total = 0;
    for (const double share : shares)
      total += share;
    return total;
  };
  // No link ends before everybody's input went over it.
  double least = 0;
  double enough = 0;
  for (const BytesPerSecond rate : rates) {
    least = std::max(least, 1 / rate.value);
    enough = std::max(enough, (1 + others) / rate.value);
  }
  if (sum(shares_within(least)) < 1) {
    for (int i = 0; i < 60; ++i) {
      const double middle = (least + enough) / 2;
      (sum(shares_within(middle)) < 1 ? least : enough) = middle;
    }
  } else {
    enough = least;  // the slowest link bounds it: its server owns nothing
  }
  std::vector<double> shares = shares_within(enough);
  const double total = sum(shares);
  for (double& share : shares)
    share /= total;
  return shares;
}

std::optional<HierarchicalLayout> plan_hierarchical_layout(const RankLocations& sites) {
  HierarchicalLayout grid;
  grid.servers = ranks_by_server(sites);
  if (grid.servers.size() < 2 || !are_alike(grid.servers)) return std::nullopt;
  const std::size_t n = grid.servers.size();
  grid.weights.assign(n, 1.0 / static_cast<double>(n));
  std::vector<BytesPerSecond> rates;
  for (const auto& row : grid.servers)
    rates.push_back(at(sites.rate, row.front()));
  const bool all_known =
      std::all_of(rates.begin(), rates.end(), [](BytesPerSecond rate) { return rate.value > 0; });
  if (all_known && n >= 3) {
    const auto weights = balanced_link_shares(rates);
    const auto slowest = std::min_element(rates.begin(), rates.end())->value;
    const double ring = 2 * (1 - 1 / static_cast<double>(n)) / slowest;
    constexpr double kWorthIt = 0.95;  // many senders to one receiver are less orderly than a ring
    if (direct_time(rates, weights) < kWorthIt * ring) {
      grid.weights = weights;
      grid.is_ring = false;
    }
  }
  if (grid.is_ring && grid.ranks_per_server() == 1) return std::nullopt;
  return grid;
}

Seconds all_reduce_bound(Bytes bytes, const RankLocations& sites) {
  std::map<int, BytesPerSecond> rate_of;
  for (std::size_t rank = 0; rank < sites.server.size(); ++rank)
    rate_of.try_emplace(sites.server[rank], sites.rate[rank]);
  std::vector<BytesPerSecond> rates;
  for (const auto& [server, rate] : rate_of)
    rates.push_back(rate);
  if (rates.size() < 2) return {};
  const auto weights =
      rates.size() == 2 ? std::vector<double>(2, 0.5) : balanced_link_shares(rates);
  return Seconds{static_cast<double>(bytes.value) * direct_time(rates, weights)};
}

std::vector<HierarchicalFlow> hierarchical_flows(const HierarchicalLayout& grid) {
  const auto servers = static_cast<int>(grid.servers.size());
  const int locals = grid.ranks_per_server();
  const auto rank_at = [&](int server, int local) { return at(at(grid.servers, server), local); };
  const auto weight = [&](int server) { return at(grid.weights, server); };
  std::vector<HierarchicalFlow> flows;
  for (int server = 0; server < servers; ++server) {
    for (int local = 0; local < locals; ++local) {
      const int from = rank_at(server, local);
      for (int other = 0; other < locals; ++other)
        if (other != local) flows.push_back({from, rank_at(server, other), 2.0 / locals});
      if (grid.is_ring) {
        const double bytes = 2 * pass_share(servers) / locals;
        flows.push_back({from, rank_at((server + 1) % servers, local), bytes});
        continue;
      }
      for (int other = 0; other < servers; ++other) {
        if (other == server) continue;
        flows.push_back({from, rank_at(other, local), (weight(server) + weight(other)) / locals});
      }
    }
  }
  return flows;
}

int hierarchical_steps(const HierarchicalLayout& grid) {
  const int inside = grid.ranks_per_server() > 1 ? 2 : 0;
  const int between = grid.is_ring ? 2 * (static_cast<int>(grid.servers.size()) - 1) : 2;
  return inside + between;
}

}  // namespace regatta::cost
