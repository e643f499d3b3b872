#include "regatta/fabric/flow_simulation.h"

#include <algorithm>
#include <queue>

#include <fmt/core.h>

#include "regatta/core/check.h"
#include "regatta/fabric/max_min.h"

namespace regatta::fabric {
namespace {

constexpr std::uint32_t kNone = ~0U;

// Flows by number, each with those that wait for it.
class Followers {
 public:
  explicit Followers(const Traffic& traffic) : first_(traffic.flows().size() + 1, 0) {
    for (const Traffic::Wait& wait : traffic.waits())
      ++first_[wait.before + 1];
    for (std::size_t flow = 1; flow < first_.size(); ++flow)
      first_[flow] += first_[flow - 1];
    following_.resize(traffic.waits().size());
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (const Traffic::Wait& wait : traffic.waits())
      following_[next[wait.before]++] = wait.flow_and_after;
  }

  // Calls use(flow, after) for each.
  template <typename Use>
  void for_each(std::uint32_t flow, Use&& use) const {
    for (std::uint32_t i = first_[flow]; i < first_[flow + 1]; ++i)
      use(following_[i] / 2, static_cast<After>(following_[i] % 2));
  }

 private:
  std::vector<std::uint32_t> first_;
  std::vector<std::uint32_t> following_;
};

struct Event {
  double time;
  std::uint32_t flow;
  std::uint32_t version;  // of its rate when this was the time at which it is sent; 0: it starts
};
struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return a.time != b.time ? a.time > b.time : a.flow > b.flow;
  }
};

// A flow under way.
struct Active {
  double left = 0;   // bytes, at `since`
  double since = 0;  // seconds
  double rate = 0;   // bytes per second
  std::uint32_t flow = kNone;
  std::uint32_t version = 0;
  std::uint32_t mark = 0;  // the last search that found it
};

// What is under way over one link.
struct Busy {
  std::vector<std::uint32_t> slots;  // of active flows, and which of their links this is
  std::vector<std::uint32_t> hops;
  std::uint32_t mark = 0;
  std::uint32_t number = 0;  // in the search
};

class Simulation {
 public:
  Simulation(const Links& links, const Paths& paths, const Traffic& traffic)
      : links_(links), paths_(paths), traffic_(traffic), followers_(traffic) {
    const std::size_t flows = traffic.flows().size();
    for (const Traffic::Flow& flow : traffic.flows())
      REGATTA_CHECK(flow.path < paths.size());
    report_.flows.resize(flows);
    report_.bytes_of_link.resize(links.capacity.size(), 0);
    busy_.resize(links.capacity.size());
    slot_of_.assign(flows, kNone);
    waits_for_.reserve(flows);
    for (const Traffic::Flow& flow : traffic.flows())
      waits_for_.push_back(flow.waits_for);
    for (std::uint32_t path = 0; path < paths.size(); ++path)
      most_hops_ = std::max(most_hops_, paths.links(path).size());
  }

  Result<FlowReport> run() {
    for (std::uint32_t flow = 0; flow < waits_for_.size(); ++flow)
      if (waits_for_[flow] == 0) events_.push({traffic_.flows()[flow].delay, flow, 0});
    while (!events_.empty()) {
      now_ = events_.top().time;
      // What ends at one moment but for rounding ends in one step.
      const double last = now_ * (1 + 1e-12);
      while (!events_.empty() && events_.top().time <= last) {
        const Event event = events_.top();
        events_.pop();
        happen(event);
      }
      share();
    }
    return finish();
  }

 private:
  void happen(const Event& event) {
    if (event.version == 0) {
      start(event.flow);
      return;
    }
    const std::uint32_t slot = slot_of_[event.flow];
    if (slot == kNone || active_[slot].version != event.version) return;  // its rate has changed
    remove(slot);
    sent(event.flow);
  }

  std::span<const std::uint32_t> links_of(std::uint32_t flow) const {
    return paths_.links(traffic_.flows()[flow].path);
  }

  void start(std::uint32_t flow) {
    report_.flows[flow].start = now_;
    const std::span<const std::uint32_t> links = links_of(flow);
    if (links.empty() || traffic_.flows()[flow].bytes == 0) {
      sent(flow);
      return;
    }
    const std::uint32_t slot = take_slot();
    slot_of_[flow] = slot;
    Active& one = active_[slot];
    one.left = traffic_.flows()[flow].bytes;
    one.since = now_;
    one.rate = 0;
    one.flow = flow;
    one.version = 1;
    for (std::uint32_t hop = 0; hop < links.size(); ++hop) {
      Busy& busy = busy_[links[hop]];
      places_[slot * most_hops_ + hop] = static_cast<std::uint32_t>(busy.slots.size());
      busy.slots.push_back(slot);
      busy.hops.push_back(hop);
    }
    changed_.push_back(slot);
  }

  std::uint32_t take_slot() {
    if (!free_.empty()) {
      const std::uint32_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
    active_.emplace_back();
    places_.resize(active_.size() * most_hops_);
    return static_cast<std::uint32_t>(active_.size() - 1);
  }

  void remove(std::uint32_t slot) {
    const std::uint32_t flow = active_[slot].flow;
    const std::span<const std::uint32_t> links = links_of(flow);
    for (std::uint32_t hop = 0; hop < links.size(); ++hop) {
      Busy& busy = busy_[links[hop]];
      const std::uint32_t place = places_[slot * most_hops_ + hop];
      busy.slots[place] = busy.slots.back();
      busy.hops[place] = busy.hops.back();
      places_[busy.slots[place] * most_hops_ + busy.hops[place]] = place;
      busy.slots.pop_back();
      busy.hops.pop_back();
      if (!busy.slots.empty()) freed_.push_back(links[hop]);
    }
    active_[slot].flow = kNone;
    slot_of_[flow] = kNone;
    free_.push_back(slot);
  }

  void sent(std::uint32_t flow) {
    FlowTimes& times = report_.flows[flow];
    times.sent = times.arrived = now_;
    for (const std::uint32_t link : links_of(flow)) {
      times.arrived += links_.latency[link];
      report_.bytes_of_link[link] += traffic_.flows()[flow].bytes;
    }
    report_.end = std::max(report_.end, Seconds{times.arrived});
    ++done_;
    followers_.for_each(flow, [&](std::uint32_t next, After after) {
      FlowTimes& its = report_.flows[next];
      // Until it starts: when it may.
      its.start = std::max(its.start, after == After::kSent ? times.sent : times.arrived);
      if (--waits_for_[next] == 0)
        events_.push({its.start + traffic_.flows()[next].delay, next, 0});
    });
  }

  // New rates for all that may have others since the last step.
  void share() {
    ++search_;
    for (const std::uint32_t slot : changed_)
      if (active_[slot].flow != kNone && active_[slot].mark != search_) share_around(slot);
    for (const std::uint32_t link : freed_)
      if (!busy_[link].slots.empty() && active_[busy_[link].slots.front()].mark != search_)
        share_around(busy_[link].slots.front());
    changed_.clear();
    freed_.clear();
  }

  void share_around(std::uint32_t slot) {
    if (is_alone(slot)) {
      active_[slot].mark = search_;
      double rate = kNoLimit;
      for (const std::uint32_t link : links_of(active_[slot].flow))
        rate = std::min(rate, links_.capacity[link]);
      set_rate(slot, rate);
      return;
    }
    find_around(slot);
    const std::vector<double> rates = max_min_rates(sharing_);
    for (std::size_t i = 0; i < found_.size(); ++i)
      set_rate(found_[i], rates[i]);
  }

  bool is_alone(std::uint32_t slot) const {
    return std::ranges::all_of(links_of(active_[slot].flow), [this](std::uint32_t link) {
      return busy_[link].slots.size() == 1;
    });
  }

  // All flows that share links with this one, directly or through others, as a problem of its own.
  void find_around(std::uint32_t slot) {
    found_.clear();
    sharing_.capacity.clear();  // not what it holds: the next one is about as large
    sharing_.links.clear();
    sharing_.first.resize(1);
    add_found(slot);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      for (const std::uint32_t link : links_of(active_[found_[i]].flow)) {
        Busy& busy = busy_[link];
        if (busy.mark != search_) {
          busy.mark = search_;
          busy.number = sharing_.add_link(links_.capacity[link]);
          for (const std::uint32_t other : busy.slots)
            if (active_[other].mark != search_) add_found(other);
        }
        sharing_.links.push_back(busy.number);
      }
      sharing_.first.push_back(static_cast<std::uint32_t>(sharing_.links.size()));
    }
  }

  void add_found(std::uint32_t slot) {
    active_[slot].mark = search_;
    found_.push_back(slot);
  }

  void set_rate(std::uint32_t slot, double rate) {
    Active& one = active_[slot];
    if (rate == one.rate) return;
    one.left = std::max(0.0, one.left - one.rate * (now_ - one.since));
    one.since = now_;
    one.rate = rate;
    events_.push({now_ + one.left / rate, one.flow, ++one.version});
  }

  Result<FlowReport> finish() {
    if (done_ == traffic_.flows().size()) return std::move(report_);
    const std::uint32_t flow = in_a_circle();
    return Error{Code::kInvalidInput,
                 fmt::format("flow {} waits for itself, through others or directly; remove one of "
                             "the waits of that circle",
                             flow)};
  }

  // Who waits and whom it waits for, until one comes again.
  std::uint32_t in_a_circle() const {
    std::vector<std::uint32_t> waits_on(waits_for_.size(), kNone);
    for (const Traffic::Wait& wait : traffic_.waits())
      if (waits_for_[wait.before] != 0) waits_on[wait.flow_and_after / 2] = wait.before;
    std::vector<bool> is_seen(waits_for_.size(), false);
    std::uint32_t flow = 0;
    while (waits_for_[flow] == 0)
      ++flow;
    for (; !is_seen[flow]; flow = waits_on[flow])
      is_seen[flow] = true;
    return flow;
  }

  const Links& links_;
  const Paths& paths_;
  const Traffic& traffic_;
  const Followers followers_;
  FlowReport report_;
  double now_ = 0;
  std::size_t done_ = 0;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<std::uint32_t> waits_for_;
  std::vector<std::uint32_t> slot_of_;  // per flow; kNone: not under way
  std::vector<Active> active_;
  std::vector<std::uint32_t> free_;  // slots
  std::size_t most_hops_ = 0;
  std::vector<std::uint32_t> places_;   // per slot and hop: where it stands in the link's list
  std::vector<Busy> busy_;              // per link
  std::vector<std::uint32_t> changed_;  // slots that began in this step
  std::vector<std::uint32_t> freed_;    // links that flows left which others use
  std::uint32_t search_ = 0;
  std::vector<std::uint32_t> found_;
  Sharing sharing_;
};

}  // namespace

Result<FlowReport> simulate_flows(const Links& links, const Paths& paths, const Traffic& traffic) {
  return Simulation(links, paths, traffic).run();
}

}  // namespace regatta::fabric
