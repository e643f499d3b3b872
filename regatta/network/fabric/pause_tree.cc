#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "regatta/network/fabric/port_pfc_watchdog.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric {
namespace {

class Trees {
 public:
  Trees(const std::vector<std::uint32_t>& held,
        const std::function<std::vector<std::uint32_t>(std::uint32_t)>& waits_for)
      : left_(held.begin(), held.end()) {
    for (const std::uint32_t link : held)
      for (const std::uint32_t next : waits_for(link)) {
        waits_for_[link].push_back(next);
        waited_for_by_[next].push_back(link);
      }
  }

  // Links that wait for no other, by the node where they end.
  std::map<std::uint32_t, std::vector<std::uint32_t>> roots(
      const std::function<std::uint32_t(std::uint32_t)>& end_of) const {
    std::map<std::uint32_t, std::vector<std::uint32_t>> roots;
    for (const std::uint32_t link : left_)
      if (!waits_for_.contains(link)) roots[end_of(link)].push_back(link);
    return roots;
  }

  // Each with those that wait for them, in rounds, so that who is near to several is of the
  // nearest.
  void grow(std::vector<PauseTree>& trees) {
    for (const PauseTree& tree : trees)
      for (const std::uint32_t link : tree.links)
        left_.erase(link);
    std::vector<std::size_t> done(trees.size(), 0);
    for (bool grows = true; grows;) {
      grows = false;
      for (std::size_t i = 0; i < trees.size(); ++i) {
        const std::size_t end = trees[i].links.size();
        for (; done[i] < end; ++done[i])
          for (const std::uint32_t link : waited_for_by_[trees[i].links[done[i]]])
            if (left_.erase(link) != 0) trees[i].links.push_back(link);
        grows = grows || trees[i].links.size() > end;
      }
    }
  }

  // Each link in no tree waits for another such link, so that some wait in a cycle.
  std::optional<DependencyCycle> cycle() const {
    if (left_.empty()) return std::nullopt;
    DependencyCycle path;
    std::uint32_t link = *left_.begin();
    while (!std::ranges::count(path, link)) {
      path.push_back(link);
      const auto& next = waits_for_.at(link);
      link = *std::ranges::find_if(next, [&](std::uint32_t one) { return left_.contains(one); });
    }
    return DependencyCycle(std::ranges::find(path, link), path.end());
  }

 private:
  std::set<std::uint32_t> left_;  // in no tree yet
  std::map<std::uint32_t, std::vector<std::uint32_t>> waits_for_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> waited_for_by_;
};

}  // namespace

std::vector<PauseTree> pause_trees(
    const std::vector<std::uint32_t>& held,
    const std::function<std::vector<std::uint32_t>(std::uint32_t link)>& waits_for,
    const std::function<std::uint32_t(std::uint32_t link)>& end_of) {
  Trees search(held, waits_for);
  std::vector<PauseTree> trees;
  for (auto& [root, links] : search.roots(end_of))
    trees.push_back({.root = root, .cycle = {}, .links = std::move(links)});
  search.grow(trees);
  while (const auto cycle = search.cycle()) {
    std::vector<PauseTree> one = {
        {.root = end_of(cycle->front()), .cycle = *cycle, .links = *cycle}};
    search.grow(one);
    trees.push_back(std::move(one.front()));
  }
  return trees;
}

std::vector<PauseTree> pause_trees(const topo::Graph& graph,
                                   const std::vector<std::uint32_t>& held) {
  const std::set<std::uint32_t> all(held.begin(), held.end());
  const auto end_of = [&](std::uint32_t link) {
    return static_cast<std::uint32_t>(head_of(graph, link).value);
  };
  const auto waits_for = [&](std::uint32_t link) {
    std::vector<std::uint32_t> next;
    const NodeId end{static_cast<int>(end_of(link))};
    if (graph.nodes[end.index()].kind == topo::NodeKind::kServer)
      return next;  // it forwards nothing
    for (const LinkId id : graph.links_of[end.index()]) {
      const std::uint32_t number = number_of({id, graph.links[id.index()].a == end});
      if (number != (link ^ 1U) && all.contains(number)) next.push_back(number);
    }
    return next;
  };
  return pause_trees(held, waits_for, end_of);
}

}  // namespace regatta::fabric
