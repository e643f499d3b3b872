#include "regatta/planning/plan/internal/placement/placement_state.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::plan {

PlacementState::PlacementState(const PlacementProblem& network, LeafAssignment leaf_of)
    : network_(&network), leaf_of_(static_cast<std::size_t>(network.slots), 0) {
  const std::size_t leaves = network.leaves.size();
  slots_in_.resize(leaves);
  for (const LeafServers& leaf : network.leaves)
    free_.push_back(leaf.capacity());
  levels_[0].loads.resize(leaves);
  levels_[0].rate = 2 * network.leaf_rate.value;
  levels_[1].loads.resize(static_cast<std::size_t>(network.groups));
  levels_[1].rate = network.groups > 1 ? 2 * network.group_rate.value : 0;
  // All start in leaf 0, which sends nothing, and move to their places.
  for (int slot = 0; slot < network.slots; ++slot)
    shift(slot, at(leaf_of, slot));
  for (int slot = 0; slot < network.slots; ++slot) {
    at(slots_in_, leaf(slot)).push_back(slot);
    --at(free_, leaf(slot));
  }
  find_busiest();
  score_ = score_now({}, powers_outside({}));
}

void PlacementState::shift(int slot, int to) {
  const int from = leaf(slot);
  if (levels_[0].rate > 0) shift_level(0, slot, {from, to});
  if (levels_[1].rate > 0 && group(from) != group(to))
    shift_level(1, slot, {group(from), group(to)});
  at(leaf_of_, slot) = to;
}

// Only what the two parts send changes: a peer in a third one is outside of both.
void PlacementState::shift_level(std::size_t level, int slot, Touched way) {
  if (way.from == way.to) return;
  Level& here = levels_[level];
  Loads& from = at(here.loads, way.from);
  Loads& to = at(here.loads, way.to);
  const auto s = static_cast<std::size_t>(slot);
  const auto add = [&](int axis, HalfBytes at_from, HalfBytes at_to) {
    const auto a = static_cast<std::size_t>(axis);
    from[a] += at_from;
    to[a] += at_to;
    here.carried[a] += at_from + at_to;
  };
  for (int i = network_->first[s]; i < network_->first[s + 1]; ++i) {
    const NeighbourTraffic& other = at(network_->neighbours, i);
    const int there = part(level, other.slot);
    add(other.axis, there == way.from ? other.each_way : -other.each_way,
        there == way.to ? -other.each_way : other.each_way);
  }
  for (int i = network_->first_exchange[s]; i < network_->first_exchange[s + 1]; ++i) {
    const AllToAllGroup& exchange = at(network_->exchanges, at(network_->exchange_of, i));
    HalfBytes own = 0;
    HalfBytes at_from = 0;
    HalfBytes at_to = 0;
    for (const AllToAllGroup::Member& member : exchange.members) {
      if (member.slot == slot) {
        own = member.ranks;
        continue;
      }
      const int there = part(level, member.slot);
      at_from += there == way.from ? member.ranks : 0;
      at_to += there == way.to ? member.ranks : 0;
    }
    const auto sent = [&](HalfBytes inside) {
      return exchange.each_way * inside * (exchange.ranks - inside);
    };
    add(exchange.axis, sent(at_from) - sent(at_from + own), sent(at_to + own) - sent(at_to));
  }
}

void PlacementState::find_busiest(Level& level, std::size_t axis) const {
  auto& top = level.busiest[axis];
  top = {};
  level.powers[axis] = 0;
  for (std::size_t part = 0; part < level.loads.size(); ++part) {
    Part next{.part = static_cast<int>(part), .load = level.loads[part][axis]};
    level.powers[axis] += power(level, axis, next.part);
    for (Part& held : top)
      if (next.part >= 0 && (held.part < 0 || next.load > held.load)) std::swap(held, next);
  }
}

void PlacementState::find_busiest() {
  for (Level& level : levels_)
    for (std::size_t axis = 0; axis < kAxisCount; ++axis)
      find_busiest(level, axis);
}

// Three are known from before the change, so that one of them is not touched by it.
HalfBytes PlacementState::busiest(const Level& level, std::size_t axis, Touched touched) const {
  HalfBytes load = 0;
  for (const Part& held : level.busiest[axis]) {
    if (held.part < 0 || held.part == touched.from || held.part == touched.to) continue;
    load = held.load;
    break;
  }
  for (const int part : {touched.from, touched.to})
    if (part >= 0) load = std::max(load, at(level.loads, part)[axis]);
  return load;
}

double PlacementState::power(const Level& level, std::size_t axis, int part) const {
  if (level.rate <= 0) return 0;
  const double load = static_cast<double>(at(level.loads, part)[axis]);
  const double time = std::max(load / level.rate, network_->nic_time[axis].value);
  const double square = time * time;
  return square * square * square * square;
}

std::array<PlacementState::Touched, PlacementState::kLevels> PlacementState::parts_of(
    Touched leaves) const {
  if (leaves.from < 0) return {};
  return {leaves, Touched{group(leaves.from), group(leaves.to)}};
}

PlacementState::Powers PlacementState::powers_outside(Touched leaves) const {
  const auto touched = parts_of(leaves);
  Powers outside{};
  for (std::size_t i = 0; i < kLevels; ++i) {
    const auto [from, to] = touched[i];
    for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
      outside[i][axis] = levels_[i].powers[axis];
      if (from >= 0) outside[i][axis] -= power(levels_[i], axis, from);
      if (to >= 0 && to != from) outside[i][axis] -= power(levels_[i], axis, to);
    }
  }
  return outside;
}

PlacementObjective PlacementState::score_now(Touched leaves, const Powers& outside) const {
  const auto touched = parts_of(leaves);
  PlacementObjective score;
  for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
    if (network_->axes[axis].lines.empty()) continue;
    Seconds time = network_->nic_time[axis];
    double powers = 0;
    for (std::size_t i = 0; i < kLevels; ++i) {
      const Level& level = levels_[i];
      if (level.rate <= 0) continue;
      const auto [from, to] = touched[i];
      time = std::max(time,
                      Seconds{static_cast<double>(busiest(level, axis, touched[i])) / level.rate});
      score.carried += static_cast<double>(level.carried[axis]) / level.rate;
      powers += outside[i][axis];
      if (from >= 0) powers += power(level, axis, from);
      if (to >= 0 && to != from) powers += power(level, axis, to);
    }
    score.time += exposed_time(network_->axes[axis], time).value;
    const Seconds norm{std::sqrt(std::sqrt(std::sqrt(std::max(powers, 0.0))))};
    score.smooth += exposed_time(network_->axes[axis], norm).value;
  }
  return score;
}

void PlacementState::apply(const PlacementMove& change) {
  const int from = leaf(change.slot);
  shift(change.slot, change.leaf);
  if (change.other >= 0) shift(change.other, from);
}

void PlacementState::revert(const PlacementMove& change, int from) {
  if (change.other >= 0) shift(change.other, change.leaf);
  shift(change.slot, from);
}

PlacementObjective PlacementState::score_after(const PlacementMove& change) {
  const int from = leaf(change.slot);
  const Touched leaves{from, change.leaf};
  const Powers outside = powers_outside(leaves);
  apply(change);
  const PlacementObjective score = score_now(leaves, outside);
  revert(change, from);
  return score;
}

void PlacementState::make(const PlacementMove& change) {
  const int from = leaf(change.slot);
  apply(change);
  auto& source = at(slots_in_, from);
  auto& target = at(slots_in_, change.leaf);
  source.erase(std::find(source.begin(), source.end(), change.slot));
  target.push_back(change.slot);
  if (change.other >= 0) {
    target.erase(std::find(target.begin(), target.end(), change.other));
    source.push_back(change.other);
  } else {
    ++at(free_, from);
    --at(free_, change.leaf);
  }
  find_busiest();
  score_ = score_now({}, powers_outside({}));
}

std::vector<int> PlacementState::busiest_slots() const {
  double most = 0;
  std::size_t busiest_level = 0;
  int busiest_part = -1;
  for (std::size_t i = 0; i < kLevels; ++i) {
    const Level& level = levels_[i];
    for (std::size_t axis = 0; level.rate > 0 && axis < kAxisCount; ++axis) {
      const Part& top = level.busiest[axis][0];
      const Seconds time{static_cast<double>(top.load) / level.rate};
      const AxisTraffic& traffic = network_->axes[axis];
      const double held_up = (exposed_time(traffic, std::max(time, network_->nic_time[axis])) -
                              exposed_time(traffic, network_->nic_time[axis]))
                                 .value;
      if (held_up <= most) continue;
      most = held_up;
      busiest_level = i;
      busiest_part = top.part;
    }
  }
  std::vector<int> slots;
  for (int slot = 0; busiest_part >= 0 && slot < network_->slots; ++slot)
    if (part(busiest_level, slot) == busiest_part) slots.push_back(slot);
  return slots;
}

}  // namespace regatta::plan
