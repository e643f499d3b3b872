#include "regatta/network/fabric/internal/failure_sets.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "regatta/base/core/result.h"

namespace regatta::fabric {
namespace {

// The number of sets of `count` out of `size` things.
double sets_of(std::size_t size, std::size_t count) {
  double sets = 1;
  for (std::size_t i = 0; i < count; ++i)
    sets = sets * static_cast<double>(size - i) / static_cast<double>(i + 1);
  return std::round(sets);
}

}  // namespace

FailureSetEnumerator::FailureSetEnumerator(const topo::Graph& graph, const FailureOptions& options)
    : places_(static_cast<std::size_t>(options.at_once)), random_(options.seed) {
  REGATTA_CHECK(options.at_once >= 1);
  for (std::size_t id = 0; id < graph.links.size(); ++id)
    if (graph.links[id].a_nic < 0) links_.push_back(LinkId{static_cast<int>(id)});
  for (std::size_t id = 0; options.switches && id < graph.nodes.size(); ++id)
    if (graph.nodes[id].kind != topo::NodeKind::kServer)
      switches_.push_back(NodeId{static_cast<int>(id)});
  const std::size_t parts = links_.size() + switches_.size();
  if (parts < places_.size()) return;
  sets_ = sets_of(parts, places_.size());
  is_sample_ = places_.size() > 1 && sets_ > static_cast<double>(options.most_sets);
  count_ = is_sample_ ? options.most_sets : static_cast<std::size_t>(sets_);
  std::iota(places_.begin(), places_.end(), 0);
}

bool FailureSetEnumerator::next() {
  if (given_ == count_) return false;
  if (is_sample_)
    draw();
  else if (given_ > 0)
    REGATTA_CHECK(advance());
  ++given_;
  failed_ = {};
  for (const std::size_t place : places_) {
    if (place < links_.size()) {
      failed_.links.push_back(links_[place]);
    } else {
      failed_.switches.push_back(switches_[place - links_.size()]);
    }
  }
  return true;
}

// The next places in the order of a dictionary.
bool FailureSetEnumerator::advance() {
  const std::size_t size = links_.size() + switches_.size();
  for (std::size_t i = places_.size(); i-- > 0;) {
    if (places_[i] + (places_.size() - i) >= size) continue;
    std::iota(places_.begin() + static_cast<std::ptrdiff_t>(i), places_.end(), places_[i] + 1);
    return true;
  }
  return false;
}

void FailureSetEnumerator::draw() {
  const std::size_t size = links_.size() + switches_.size();
  for (std::size_t i = 0; i < places_.size();) {
    places_[i] = random_() % size;
    const auto before = std::span(places_).first(i);
    if (std::ranges::find(before, places_[i]) == before.end()) ++i;
  }
}

}  // namespace regatta::fabric
