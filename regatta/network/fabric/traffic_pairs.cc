#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {
namespace {

ServerId server_of(std::size_t index) {
  return {static_cast<int>(index)};
}

class NicPairsParser {
 public:
  NicPairsParser(const topo::Cluster& cluster, const topo::Graph& graph, const std::string& file)
      : cluster_(cluster), graph_(graph), file_(file) {
    for (std::size_t i = 0; i < cluster.servers.size(); ++i)
      servers_.emplace(cluster.servers[i].name, server_of(i));
  }

  Result<NicPairs> read(std::string_view text, std::uint32_t connections) {
    NicPairs pairs{.pairs = {}, .connections = connections, .ports = {}};
    for (const std::string& line : split(text, '\n')) {
      ++line_;
      std::vector<std::string> words = words_of(line);
      if (words.empty()) continue;
      if (words.size() != 2) return error("a pair has two NICs; write it like: s0.nic0 s1.nic0");
      REGATTA_TRY(from, find(words[0]));
      REGATTA_TRY(to, find(words[1]));
      if (from == to) return error(words[0] + " is given as both ends; name another NIC");
      pairs.add(from, to);
    }
    if (pairs.pairs.empty())
      return Error{Code::kInvalidInput,
                   file_ + ": no pair in it; write one a line like: s0.nic0 s1.nic0"};
    return pairs;
  }

 private:
  // Up to a '#'.
  static std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> words;
    std::string text = line.substr(0, line.find('#'));
    std::ranges::replace_if(
        text, [](char c) { return c == '\t' || c == '\r'; }, ' ');
    for (std::string& word : split(text, ' '))
      if (!word.empty()) words.push_back(std::move(word));
    return words;
  }
  Error error(const std::string& what) const {
    return {Code::kInvalidInput, fmt::format("{}:{}: {}", file_, line_, what)};
  }

  Result<LinkId> find(const std::string& word) const {
    const std::size_t dot = word.rfind(".nic");
    const auto server = servers_.find(word.substr(0, dot));
    if (server == servers_.end())
      return error(fmt::format("the cluster has no server '{}'; its servers are {} to {}",
                               printable(word.substr(0, dot), 60), cluster_.servers.front().name,
                               cluster_.servers.back().name));
    const int nics = cluster_.type_of(server->second).nic_count;
    int nic = -1;
    if (dot != std::string::npos) {
      const char* end = word.data() + word.size();
      const auto [stop, failed] = std::from_chars(word.data() + dot + 4, end, nic);
      if (failed != std::errc() || stop != end) nic = -1;
    } else if (nics == 1) {
      nic = 0;
    }
    if (nic < 0 || nic >= nics)
      return error(fmt::format("'{}' is no NIC; {} has {}.nic0 to {}.nic{}", printable(word, 60),
                               server->first, server->first, server->first, nics - 1));
    return nic_link(graph_, server->second, nic);
  }

  const topo::Cluster& cluster_;
  const topo::Graph& graph_;
  const std::string& file_;
  std::map<std::string, ServerId> servers_;
  int line_ = 0;
};

}  // namespace

NicPairs ring_pairs(const topo::Cluster& cluster, const topo::Graph& graph,
                    std::uint32_t connections) {
  NicPairs pairs{.pairs = {}, .connections = connections, .ports = {}};
  const std::size_t servers = cluster.servers.size();
  for (std::size_t i = 0; i < servers && servers > 1; ++i) {
    const ServerId from = server_of(i);
    const ServerId to = server_of((i + 1) % servers);
    const int nics = std::min(cluster.type_of(from).nic_count, cluster.type_of(to).nic_count);
    for (int nic = 0; nic < nics; ++nic)
      pairs.add(nic_link(graph, from, nic), nic_link(graph, to, nic));
  }
  return pairs;
}

NicPairs permutation_pairs(const topo::Cluster& cluster, const topo::Graph& graph,
                           std::uint32_t connections, std::uint64_t seed) {
  NicPairs pairs{.pairs = {}, .connections = connections, .ports = {}};
  std::vector<ServerId> servers;
  const int nics = cluster.type_of(ServerId{0}).nic_count;
  for (std::size_t i = 0; i < cluster.servers.size(); ++i)
    if (cluster.type_of(server_of(i)).nic_count == nics) servers.push_back(server_of(i));
  if (servers.size() < 2) return pairs;
  std::mt19937_64 random(seed);
  for (int nic = 0; nic < nics; ++nic) {
    // Each one to the next of a random round (Sattolo's algorithm): never to itself.
    std::vector<ServerId> to = servers;
    for (std::size_t i = to.size() - 1; i > 0; --i)
      std::swap(to[i], to[random() % i]);
    for (std::size_t i = 0; i < servers.size(); ++i)
      pairs.add(nic_link(graph, servers[i], nic), nic_link(graph, to[i], nic));
  }
  return pairs;
}

Result<NicPairs> parse_pairs(const topo::Cluster& cluster, const topo::Graph& graph,
                             std::uint32_t connections, std::string_view text,
                             const std::string& file) {
  return NicPairsParser(cluster, graph, file).read(text, connections);
}

std::string nic_name(const topo::Graph& graph, LinkId nic) {
  const topo::Link& link = graph.links[nic.index()];
  return fmt::format("{}.nic{}", graph.nodes[link.a.index()].name, link.a_nic);
}

}  // namespace regatta::fabric
