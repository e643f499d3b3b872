#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {
namespace {

constexpr std::size_t kLongest = 60;  // of a word in a message

class RoutesParser {
 public:
  RoutesParser(const topo::Graph& graph, const std::string& file)
      : graph_(graph), file_(file), routes_(graph) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
      if (graph.nodes[i].kind != topo::NodeKind::kServer)
        switches_.emplace(graph.nodes[i].name, NodeId{static_cast<int>(i)});
  }

  Result<Routes> read(std::string_view text) {
    for (const std::string& line : split(text, '\n')) {
      ++line_;
      const std::vector<std::string> words = words_of(line);
      if (!words.empty()) REGATTA_TRY_DO(read_line(words));
    }
    if (given_.empty())
      return Error{Code::kInvalidInput,
                   file_ +
                       ": no route is in it; write at least one line like: spine0 leaf3 "
                       "leaf3-spine0"};
    return std::move(routes_);
  }

 private:
  // Up to a '#'.
  static std::vector<std::string> words_of(const std::string& line) {
    std::vector<std::string> words;
    std::string word;
    for (const char letter : line.substr(0, line.find('#')) + " ") {
      if (letter != ' ' && letter != '\t' && letter != '\r') {
        word += letter;
      } else if (!word.empty()) {
        words.push_back(std::exchange(word, {}));
      }
    }
    return words;
  }

  Error error(const std::string& what) const {
    return {Code::kInvalidInput, fmt::format("{}:{}: {}", file_, line_, what)};
  }

  // "; did you mean 'spine1'?" or `remedy`.
  static std::string nearest(const std::string& word, const std::vector<std::string>& known,
                             const std::string& remedy) {
    const std::string near = nearest_word(word, known);
    return near.empty() ? "; " + remedy : "; did you mean '" + near + "'?";
  }

  Result<NodeId> find_switch(const std::string& name) const {
    if (const auto at = switches_.find(name); at != switches_.end()) return at->second;
    std::vector<std::string> known;
    for (const auto& [one, node] : switches_)
      known.push_back(one);
    return error(fmt::format("the cluster has no switch '{}'{}", printable(name, kLongest),
                             nearest(name, known, "regatta topo CLUSTER --svg FILE shows them")));
  }

  Result<NodeId> find_leaf(const std::string& name) const {
    REGATTA_TRY(leaf, find_switch(name));
    for (const NodeId one : routes_.leaves())
      if (one == leaf) return leaf;
    return error(
        fmt::format("'{}' is no leaf with servers; a route leads to one, or to * for all", name));
  }

  // The directed link out of `node`.
  Result<std::uint32_t> find_link(NodeId node, const std::string& name) const {
    std::vector<std::string> known;
    for (const LinkId id : graph_.links_of[node.index()]) {
      const topo::Link& link = graph_.links[id.index()];
      if (link.a_nic >= 0) continue;
      if (link.name == name) return number_of({id, link.a == node});
      known.push_back(link.name);
    }
    const std::string some =
        known.empty() ? "it has none to another switch" : "write one like " + known.front();
    return error(fmt::format("{} has no link '{}' to another switch{}",
                             graph_.nodes[node.index()].name, printable(name, kLongest),
                             nearest(name, known, some)));
  }

  Status read_line(const std::vector<std::string>& words) {
    if (words.size() < 3)
      return error(
          "a route has a switch, a leaf and one link or more; write it like: spine0 leaf3 "
          "leaf3-spine0");
    REGATTA_TRY(node, find_switch(words[0]));
    std::optional<NodeId> to;
    if (words[1] != "*") {
      REGATTA_TRY(leaf, find_leaf(words[1]));
      if (leaf == node)
        return error(
            fmt::format("{} is the leaf itself, whose servers hang on it; leave the line "
                        "out",
                        words[0]));
      to = leaf;
    }
    std::vector<std::uint32_t> hops;
    for (std::size_t i = 2; i < words.size(); ++i) {
      REGATTA_TRY(link, find_link(node, words[i]));
      if (std::ranges::count(hops, link) > 0)
        return error(fmt::format("link {} is given twice; keep one", words[i]));
      hops.push_back(link);
    }
    return set(node, to, hops);
  }

  Status set(NodeId node, std::optional<NodeId> to, const std::vector<std::uint32_t>& hops) {
    if (!given_.emplace(node, to.value_or(NodeId())).second)
      return error(fmt::format("the route of {} to {} is given twice; keep one line",
                               graph_.nodes[node.index()].name,
                               to ? graph_.nodes[to->index()].name : "*"));
    if (to) {
      routes_.set_next_hops(node, *to, hops);
      return {};
    }
    for (const NodeId leaf : routes_.leaves())
      if (leaf != node && !given_.contains({node, leaf})) routes_.set_next_hops(node, leaf, hops);
    return {};
  }

  const topo::Graph& graph_;
  const std::string& file_;
  Routes routes_;
  std::map<std::string, NodeId> switches_;
  std::set<std::pair<NodeId, NodeId>> given_;  // switch and leaf, or no leaf for all
  int line_ = 0;
};

}  // namespace

Result<Routes> parse_routes(const topo::Graph& graph, std::string_view text,
                            const std::string& file) {
  return RoutesParser(graph, file).read(text);
}

}  // namespace regatta::fabric
