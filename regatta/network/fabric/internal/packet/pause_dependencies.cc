#include "regatta/network/fabric/internal/packet/pause_dependencies.h"

#include <algorithm>

namespace regatta::fabric::packet {
namespace {

// Depth first over "waits for".
class PauseCycleSearch {
 public:
  explicit PauseCycleSearch(const PauseDependencies& waits_for)
      : waits_for_(waits_for), state_(waits_for.size(), State::kUnseen) {}

  DependencyCycle find() {
    DependencyCycle cycle;
    for (std::uint32_t link = 0; link < waits_for_.size() && cycle.empty(); ++link)
      if (state_[link] == State::kUnseen) cycle = from(link);
    return cycle;
  }

 private:
  enum class State : std::uint8_t { kUnseen, kOnPath, kDone };

  DependencyCycle from(std::uint32_t link) {
    std::vector<std::size_t> next = {0};
    DependencyCycle path = {link};
    state_[link] = State::kOnPath;
    while (!path.empty()) {
      const std::uint32_t here = path.back();
      if (next.back() == waits_for_[here].size()) {
        state_[here] = State::kDone;
        path.pop_back();
        next.pop_back();
        continue;
      }
      const std::uint32_t to = waits_for_[here][next.back()++];
      if (state_[to] == State::kOnPath) return {std::ranges::find(path, to), path.end()};
      if (state_[to] == State::kDone) continue;
      state_[to] = State::kOnPath;
      path.push_back(to);
      next.push_back(0);
    }
    return {};
  }

  const PauseDependencies& waits_for_;
  std::vector<State> state_;
};

}  // namespace

PauseDependencies pause_dependencies(const LinkQueues& link_queues) {
  PauseDependencies waits_for(link_queues.count());
  for (const std::uint32_t link : link_queues.pauses().paused()) {
    const FifoQueue<Packet>& waiting = link_queues.waiting(link);
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      const std::uint32_t from = waiting.at(i).from;
      if (link_queues.pauses().is_paused(from) && !std::ranges::count(waits_for[from], link))
        waits_for[from].push_back(link);
    }
  }
  return waits_for;
}

DependencyCycle find_cycle(const PauseDependencies& dependencies) {
  return PauseCycleSearch(dependencies).find();
}

}  // namespace regatta::fabric::packet
