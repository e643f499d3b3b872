// bench/healing/sequence_switches.h: the switches of a simulated fabric as a healer reaches them:
// they do at once what they are told, and report the carriers of their cables.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "regatta/network/heal/healer.h"

namespace regatta {

class SequenceSwitches final : public heal::Switches {
 public:
  explicit SequenceSwitches(const heal::FabricPaths& paths) : tables_(paths), paths_(paths) {}

  Result<std::vector<heal::Installed>> installed() override {
    std::vector<heal::Installed> all;
    for (std::size_t i = 0; i < paths_.switches.size(); ++i)
      for (const NodeId node : paths_.switches[i]) {
        const NodeId leaf = paths_.routes.leaves()[i];
        all.push_back({node, leaf, tables_.parts(node, leaf), {}, {}});
      }
    return all;
  }
  std::vector<Status> apply(std::span<const heal::RouteChange> changes) override {
    tables_.apply(changes);
    ++version_;
    return std::vector<Status>(changes.size());
  }
  Result<std::vector<heal::CarrierChange>> carriers() override { return std::exchange(news_, {}); }
  int fd() const override { return -1; }

  // Both ends of the cable see it.
  void set_carrier(const topo::Graph& graph, LinkId link, bool up) {
    for (const NodeId end : {graph.links[link.index()].a, graph.links[link.index()].b})
      news_.push_back({end, link, up});
  }
  const heal::Tables& tables() const { return tables_; }
  // Grows with each change of the tables.
  int version() const { return version_; }

 private:
  heal::Tables tables_;
  const heal::FabricPaths& paths_;
  std::vector<heal::CarrierChange> news_;
  int version_ = 0;
};

}  // namespace regatta
