#include "regatta/network/link_rates/internal/train_schedule.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace regatta::link_rates {
namespace {

constexpr std::size_t kLookedAt = 512;  // waiting paths by one call

}  // namespace

TrainSchedule::TrainSchedule(const topo::Graph& graph, TrainScheduleOptions options)
    : graph_(graph),
      options_(options),
      link_in_use_(2 * graph.links.size()),
      node_in_use_(graph.nodes.size()),
      free_at_(2 * graph.links.size(), Seconds{-1e18}) {}

std::size_t TrainSchedule::add(std::span<const TrainPath> paths) {
  const std::size_t first = paths_.size();
  std::vector<double> work(2 * graph_.links.size());
  for (const TrainPath& path : paths) {
    paths_.push_back({.path = path, .rates = {}});
    const TrainShape shape = this->shape(paths_.size() - 1);
    for (const std::uint32_t link : path.loaded_links()) {
      work[link] += (frame_bytes(shape) / graph_.links[link / 2].rate).value;
      work[link ^ 1U] += (answer_bytes(shape) / graph_.links[link / 2].rate).value;
    }
  }
  for (std::size_t i = first; i < paths_.size(); ++i) {
    for (const std::uint32_t link : paths_[i].path.loaded_links())
      paths_[i].work = std::max(paths_[i].work, work[link]);
    waiting_.push_back(i);
  }
  std::ranges::stable_sort(waiting_,
                           [this](std::size_t a, std::size_t b) { return is_before(a, b); });
  return first;
}

TrainShape TrainSchedule::shape(std::size_t number) const {
  const TrainPath& path = paths_[number].path;
  return shape_for(described_rate(graph_, path), path.time_to_live().value_or(0));
}

std::size_t TrainSchedule::finished() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(paths_, [this](const State& state) { return is_finished(state); }));
}

void TrainSchedule::wait(std::size_t number) {
  const auto behind = std::ranges::upper_bound(
      waiting_, number, [this](std::size_t a, std::size_t b) { return is_before(a, b); });
  waiting_.insert(behind, number);
}

bool TrainSchedule::is_before(std::size_t one, std::size_t other) const {
  const State& a = paths_[one];
  const State& b = paths_[other];
  return a.sent != b.sent ? a.sent < b.sent : a.work > b.work;
}

void TrainSchedule::settle(std::size_t number) {
  paths_[number].is_settled = true;
  std::erase(waiting_, number);
}

bool TrainSchedule::is_idle(const State& state, const std::vector<bool>& busy) const {
  return std::ranges::none_of(state.path.links, [&](std::uint32_t link) { return busy[link]; });
}

int TrainSchedule::rounds(const std::vector<bool>& busy) const {
  int rounds = std::numeric_limits<int>::max();
  for (std::size_t i = 0; i < std::min(waiting_.size(), kLookedAt); ++i) {
    if (!is_idle(paths_[waiting_[i]], busy)) continue;
    rounds = paths_[waiting_[i]].sent;
    break;
  }
  for (const std::size_t path : in_use_)
    rounds = std::min(rounds, paths_[path].sent - 1);
  return rounds;
}

bool TrainSchedule::is_finished(const State& state) const {
  if (state.rates.empty()) return state.sent >= options_.tries;
  return state.is_settled || static_cast<int>(state.rates.size()) >= options_.trains ||
         state.sent >= options_.tries;
}

bool TrainSchedule::may_start(const State& state, Seconds now,
                              const std::vector<bool>& busy) const {
  const topo::Graph& graph = graph_;
  const auto server = [&](LinkId nic) { return graph.links[nic.index()].a.index(); };
  if (node_in_use_[server(state.path.from)] || node_in_use_[server(state.path.to)]) return false;
  return std::ranges::none_of(state.path.links, [&](std::uint32_t link) {
    return link_in_use_[link] || busy[link] || free_at_[link] > now;
  });
}

std::optional<std::size_t> TrainSchedule::start_next(Seconds now, const std::vector<bool>& busy) {
  if (in_use_.size() >= options_.together) return std::nullopt;
  const std::size_t looks = std::min(waiting_.size(), kLookedAt);
  const int round = rounds(busy);
  for (std::size_t i = 0; i < looks; ++i) {
    const std::size_t number = waiting_[i];
    State& state = paths_[number];
    if (state.sent > round) break;
    if (!may_start(state, now, busy)) continue;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    state.is_in_use = true;
    ++state.sent;
    in_use_.insert(number);
    for (const std::uint32_t link : state.path.links)
      link_in_use_[link] = true;
    for (const LinkId nic : {state.path.from, state.path.to})
      node_in_use_[graph_.links[nic.index()].a.index()] = true;
    return number;
  }
  return std::nullopt;
}

void TrainSchedule::finish(std::size_t number, std::optional<BytesPerSecond> rate, Seconds now) {
  State& state = paths_[number];
  if (!std::exchange(state.is_in_use, false)) return;
  in_use_.erase(number);
  for (const std::uint32_t link : state.path.links)
    link_in_use_[link] = false;
  for (const LinkId nic : {state.path.from, state.path.to})
    node_in_use_[graph_.links[nic.index()].a.index()] = false;
  charge(state, rate, now);
  if (rate) {
    state.rates.push_back(*rate);
    ++arrived_;
  }
  if (!is_finished(state)) wait(number);
}

void TrainSchedule::charge(const State& state, std::optional<BytesPerSecond> rate, Seconds now) {
  const BytesPerSecond described = described_rate(graph_, state.path);
  const TrainShape shape = shape_for(described, state.path.time_to_live().value_or(0));
  // Any link of a path that is slower than described may be the one that was busy for so long.
  const bool is_slow = rate && *rate < 0.9 * described;
  const auto take = [&](std::uint32_t link, Bytes bytes, BytesPerSecond carried) {
    free_at_[link] = std::max(free_at_[link], now) + (bytes / carried) / options_.share;
  };
  for (const std::uint32_t link : state.path.loaded_links()) {
    const BytesPerSecond own = graph_.links[link / 2].rate;
    take(link, frame_bytes(shape), is_slow ? *rate : own);
    take(link ^ 1U, answer_bytes(shape), own);
  }
}

void TrainSchedule::discard_last(std::size_t number) {
  State& state = paths_[number];
  if (state.rates.empty()) return;
  const bool was_finished = is_finished(state);
  state.is_settled = false;
  state.rates.pop_back();
  --arrived_;
  if (was_finished && !is_finished(state)) wait(number);
}

bool TrainSchedule::is_done() const {
  return waiting_.empty() && in_use_.empty();
}

}  // namespace regatta::link_rates
