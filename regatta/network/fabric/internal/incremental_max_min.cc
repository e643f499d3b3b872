#include "regatta/network/fabric/internal/incremental_max_min.h"

#include <algorithm>

#include "regatta/base/core/result.h"

namespace regatta::fabric {
namespace {

constexpr double kTolerance = 1e-9;  // relative: of rates that are equal but for rounding
constexpr int kMostRounds = 6;       // until all that is connected is computed at once

bool is_above(double rate, double other) {
  return rate > other * (1 + kTolerance);
}

}  // namespace

IncrementalMaxMin::IncrementalMaxMin(const Links& links, const Paths& paths, bool notes_moves)
    : paths_(paths), links_(links.capacity.size()), notes_moves_(notes_moves) {
  for (std::size_t link = 0; link < links_.size(); ++link)
    links_[link].capacity = links.capacity[link];
  for (std::uint32_t path = 0; path < paths.size(); ++path)
    most_hops_ = std::max(most_hops_, paths.links(path).size());
}

std::uint32_t IncrementalMaxMin::add(std::uint32_t path) {
  std::uint32_t flow = 0;
  if (free_.empty()) {
    flow = static_cast<std::uint32_t>(flows_.size());
    flows_.emplace_back();
    places_.resize(flows_.size() * most_hops_);
  } else {
    flow = free_.back();
    free_.pop_back();
  }
  flows_[flow] = {.path = path};
  enter(flow);
  fresh_.push_back(flow);
  return flow;
}

void IncrementalMaxMin::remove(std::uint32_t flow) {
  leave(flow);
  flows_[flow].path = kNone;
  free_.push_back(flow);
}

void IncrementalMaxMin::move(std::uint32_t flow, std::uint32_t path) {
  leave(flow);
  flows_[flow].rate = 0;
  flows_[flow].path = path;
  enter(flow);
  fresh_.push_back(flow);
}

void IncrementalMaxMin::set_capacity(std::uint32_t link, double capacity) {
  REGATTA_CHECK(capacity >= 0);
  links_[link].capacity = capacity;
  touched_.push_back(link);
}

void IncrementalMaxMin::set_load(std::uint32_t link, double load) {
  Link& one = links_[link];
  one.load = load;
  if (!notes_moves_) return;
  if (is_settled_) {
    for (const std::uint32_t moved : moved_)
      links_[moved].is_moved = false;
    moved_.clear();
    is_settled_ = false;
  }
  if (!one.is_moved) moved_.push_back(link);
  one.is_moved = true;
}

void IncrementalMaxMin::enter(std::uint32_t flow) {
  const std::span<const std::uint32_t> over = paths_.links(flows_[flow].path);
  REGATTA_CHECK(!over.empty());
  if (over.size() > most_hops_) {
    const std::size_t before = most_hops_;
    most_hops_ = over.size();
    std::vector<std::uint32_t> places(flows_.size() * most_hops_);
    for (std::size_t i = 0; before != 0 && i < flows_.size() * before; ++i)
      places[i / before * most_hops_ + i % before] = places_[i];
    places_ = std::move(places);
  }
  for (std::uint32_t hop = 0; hop < over.size(); ++hop) {
    Link& link = links_[over[hop]];
    places_[flow * most_hops_ + hop] = static_cast<std::uint32_t>(link.flows.size());
    link.flows.push_back(flow);
    link.hops.push_back(hop);
  }
}

// kNone: nothing holds it back any more.
void IncrementalMaxMin::set_bottleneck(std::uint32_t flow, std::uint32_t link) {
  Flow& one = flows_[flow];
  if (one.bottleneck == link) return;
  if (one.bottleneck != kNone) {
    std::vector<std::uint32_t>& held = links_[one.bottleneck].held;
    held[one.held_place] = held.back();
    flows_[held.back()].held_place = one.held_place;
    held.pop_back();
  }
  one.bottleneck = link;
  if (link == kNone) return;
  one.held_place = static_cast<std::uint32_t>(links_[link].held.size());
  links_[link].held.push_back(flow);
}

void IncrementalMaxMin::leave(std::uint32_t flow) {
  set_bottleneck(flow, kNone);
  const std::uint32_t path = flows_[flow].path;
  const std::span<const std::uint32_t> over = paths_.links(path);
  for (std::uint32_t hop = 0; hop < over.size(); ++hop) {
    Link& link = links_[over[hop]];
    const std::uint32_t place = places_[flow * most_hops_ + hop];
    link.flows[place] = link.flows.back();
    link.hops[place] = link.hops.back();
    places_[link.flows[place] * most_hops_ + link.hops[place]] = place;
    link.flows.pop_back();
    link.hops.pop_back();
    if (link.flows.empty()) {
      set_load(over[hop], 0);
    } else {
      set_load(over[hop], std::max(0.0, link.load - paths_.amount(path, hop) * flows_[flow].rate));
      touched_.push_back(over[hop]);
    }
  }
}

std::span<const std::uint32_t> IncrementalMaxMin::settle() {
  changed_.clear();
  affected_.clear();
  ++mark_;
  find_affected();
  fresh_.clear();
  touched_.clear();
  for (int round = 0; !affected_.empty(); ++round) {
    solve();
    find_bottlenecks();
    if (!grow()) {
      commit();
      break;
    }
    if (round == kMostRounds) affect_all_around();
  }
  is_settled_ = true;
  return changed_;
}

void IncrementalMaxMin::find_affected() {
  for (const std::uint32_t flow : fresh_)
    if (flows_[flow].path != kNone && flows_[flow].mark != mark_) affect(flow);
  for (const std::uint32_t number : touched_) {
    const Link& link = links_[number];
    const bool is_over = link.load > link.capacity * (1 + kTolerance);
    around_ = is_over ? link.flows : link.held;  // affect() changes link.held
    for (const std::uint32_t flow : around_)
      if (flows_[flow].mark != mark_) affect(flow);
  }
}

void IncrementalMaxMin::affect(std::uint32_t flow) {
  flows_[flow].mark = mark_;
  if (!give_if_alone(flow)) affected_.push_back(flow);
}

// A flow that shares no link gets the rate of its narrowest link.
bool IncrementalMaxMin::give_if_alone(std::uint32_t flow) {
  const std::uint32_t path = flows_[flow].path;
  const std::span<const std::uint32_t> over = paths_.links(path);
  double rate = kNoLimit;
  std::uint32_t narrowest = over[0];
  for (std::uint32_t hop = 0; hop < over.size(); ++hop) {
    const Link& link = links_[over[hop]];
    if (link.flows.size() != 1) return false;
    const double most = link.capacity / paths_.amount(path, hop);
    if (most >= rate) continue;
    rate = most;
    narrowest = over[hop];
  }
  set_bottleneck(flow, narrowest);
  for (std::uint32_t hop = 0; hop < over.size(); ++hop)
    set_load(over[hop], paths_.amount(path, hop) * rate);
  set_rate(flow, rate);
  return true;
}

void IncrementalMaxMin::set_rate(std::uint32_t flow, double rate) {
  if (flows_[flow].rate == rate) return;
  flows_[flow].rate = rate;
  changed_.push_back(flow);
}

// Computes new rates of the affected flows; the other flows keep theirs.
void IncrementalMaxMin::solve() {
  ++problem_;
  parts_.clear();
  max_min_problem_.links.clear();  // not what it holds: the next one is about as large
  max_min_problem_.amounts.clear();
  max_min_problem_.first.resize(1);
  for (const std::uint32_t flow : affected_) {
    const std::uint32_t path = flows_[flow].path;
    const std::span<const std::uint32_t> over = paths_.links(path);
    for (std::uint32_t hop = 0; hop < over.size(); ++hop) {
      Link& link = links_[over[hop]];
      if (link.mark != problem_) {
        link.mark = problem_;
        link.number = static_cast<std::uint32_t>(parts_.size());
        parts_.push_back({.link = over[hop], .beside = link.load});
      }
      const double amount = paths_.amount(path, hop);
      parts_[link.number].beside -= amount * flows_[flow].rate;
      max_min_problem_.links.push_back(link.number);
      if (paths_.has_amounts()) max_min_problem_.amounts.push_back(amount);
    }
    max_min_problem_.first.push_back(static_cast<std::uint32_t>(max_min_problem_.links.size()));
  }
  max_min_problem_.capacity.clear();
  for (Part& part : parts_) {
    // Where all flows of a link are affected, `beside` is only a rounding error.
    if (part.beside < kTolerance * links_[part.link].capacity) part.beside = 0;
    max_min_problem_.add_link(std::max(0.0, links_[part.link].capacity - part.beside));
    part.load = part.beside;
  }
  rates_ = max_min_rates(max_min_problem_);
}

void IncrementalMaxMin::find_bottlenecks() {
  for (std::size_t i = 0; i < affected_.size(); ++i) {
    for (std::uint32_t at = max_min_problem_.first[i]; at < max_min_problem_.first[i + 1]; ++at) {
      Part& part = parts_[max_min_problem_.links[at]];
      part.load +=
          (max_min_problem_.amounts.empty() ? 1 : max_min_problem_.amounts[at]) * rates_[i];
      part.top = std::max(part.top, rates_[i]);
    }
  }
  for (Part& part : parts_)
    part.is_full = part.load >= links_[part.link].capacity * (1 - kTolerance);
  bottlenecks_.resize(affected_.size());
  for (std::size_t i = 0; i < affected_.size(); ++i) {
    std::uint32_t best = max_min_problem_.links[max_min_problem_.first[i]];
    for (std::uint32_t at = max_min_problem_.first[i]; at < max_min_problem_.first[i + 1]; ++at) {
      const Part& part = parts_[max_min_problem_.links[at]];
      if (!part.is_full || is_above(part.top, rates_[i])) continue;
      best = max_min_problem_.links[at];
      break;
    }
    bottlenecks_[i] = best;
    parts_[best].held = std::max(parts_[best].held, rates_[i]);
  }
}

// Whether others have to join the affected, for they have lost their bottleneck, or are faster than
// one that has it there.
bool IncrementalMaxMin::grow() {
  bool has_grown = false;
  for (const Part& part : parts_) {
    for (const std::uint32_t other : links_[part.link].flows) {
      Flow& flow = flows_[other];
      if (flow.mark == mark_) continue;
      const bool has_lost =
          flow.bottleneck == part.link && (!part.is_full || is_above(part.top, flow.rate));
      const bool is_faster = part.held >= 0 && is_above(flow.rate, part.held);
      if (!has_lost && !is_faster) continue;
      flow.mark = mark_;
      affected_.push_back(other);
      has_grown = true;
    }
  }
  return has_grown;
}

// All flows that share links with them, directly or through others.
void IncrementalMaxMin::affect_all_around() {
  ++problem_;
  for (std::size_t i = 0; i < affected_.size(); ++i) {
    for (const std::uint32_t number : paths_.links(flows_[affected_[i]].path)) {
      Link& link = links_[number];
      if (link.mark == problem_) continue;
      link.mark = problem_;
      for (const std::uint32_t other : link.flows) {
        if (flows_[other].mark == mark_) continue;
        flows_[other].mark = mark_;
        affected_.push_back(other);
      }
    }
  }
}

void IncrementalMaxMin::commit() {
  for (const Part& part : parts_)
    set_load(part.link, part.load);
  for (std::size_t i = 0; i < affected_.size(); ++i) {
    set_bottleneck(affected_[i], parts_[bottlenecks_[i]].link);
    set_rate(affected_[i], rates_[i]);
  }
}

}  // namespace regatta::fabric
