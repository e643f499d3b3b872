#include "regatta/network/fabric/flow_simulation.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/flow_dependents.h"
#include "regatta/network/fabric/internal/incremental_max_min.h"

namespace regatta::fabric {
namespace {

constexpr std::uint32_t kNone = ~0U;
constexpr double kMostEarly = 0.01;  // of the time that a flow takes
constexpr double kNever = std::numeric_limits<double>::infinity();

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

// A flow in flight, by its number in IncrementalMaxMin.
struct Active {
  double left = 0;    // bytes, at `since`
  double since = 0;   // seconds
  double rate = 0;    // bytes per second
  double booked = 0;  // bytes, of links that it crossed before
  std::uint32_t flow = kNone;
  std::uint32_t version = 0;
  bool leaves_first = false;  // the next event is that it has left its sender
  bool has_left = false;      // its sender; switches hold the rest
};

// Lists of slots, one for each path; a slot is in one at most.
class SlotsOfPaths {
 public:
  explicit SlotsOfPaths(std::size_t paths = 0) : first_(paths, kNone) {}

  void add(std::uint32_t path, std::uint32_t slot) {
    if (slot >= next_.size()) {
      next_.resize(slot + 1, kNone);
      before_.resize(slot + 1, kNone);
    }
    next_[slot] = first_[path];
    before_[slot] = kNone;
    if (next_[slot] != kNone) before_[next_[slot]] = slot;
    first_[path] = slot;
  }
  void remove(std::uint32_t path, std::uint32_t slot) {
    (before_[slot] == kNone ? first_[path] : next_[before_[slot]]) = next_[slot];
    if (next_[slot] != kNone) before_[next_[slot]] = before_[slot];
  }
  // By number.
  std::vector<std::uint32_t> of(std::uint32_t path) const {
    std::vector<std::uint32_t> slots;
    for (std::uint32_t slot = first_[path]; slot != kNone; slot = next_[slot])
      slots.push_back(slot);
    std::ranges::sort(slots);
    return slots;
  }

 private:
  std::vector<std::uint32_t> first_;  // per path
  std::vector<std::uint32_t> next_;   // per slot
  std::vector<std::uint32_t> before_;
};

// The rate on a link, in bytes per second.
struct Carried {
  double since = 0;  // seconds
  double rate = 0;
};

class Simulation {
 public:
  Simulation(const Links& links, const Paths& paths, const FlowGraph& traffic,
             const FlowOptions& options)
      : links_(links),
        paths_(paths),
        traffic_(traffic),
        options_(options),
        dependents_(traffic),
        rates_(links, paths, options.history != nullptr) {
    const std::size_t flows = traffic.flows().size();
    for (const FlowGraph::Flow& flow : traffic.flows())
      REGATTA_CHECK(flow.path < paths.size());
    report_.flows.resize(flows);
    report_.bytes_of_link.resize(links.capacity.size(), 0);
    has_moves_ = std::ranges::any_of(options.changes, [](const NetworkChange& one) {
      return one.kind == NetworkChange::Kind::kPath;
    });
    if (has_moves_) on_path_ = SlotsOfPaths(paths.size());
    if (options.history != nullptr) carried_.resize(links.capacity.size());
    slot_of_.assign(flows, kNone);
    pending_dependencies_.reserve(flows);
    for (const FlowGraph::Flow& flow : traffic.flows())
      pending_dependencies_.push_back(flow.pending_dependencies);
  }

  Result<FlowReport> run() {
    for (std::uint32_t flow = 0; flow < pending_dependencies_.size(); ++flow)
      if (pending_dependencies_[flow] == 0) events_.push({traffic_.flows()[flow].delay, flow, 0});
    while (!events_.empty() || has_change()) {
      if (options_.stop != nullptr && *options_.stop) {
        stop();
        break;
      }
      const bool change_first =
          has_change() && (events_.empty() || next_change().time <= events_.top().time);
      now_ = std::max(now_, change_first ? next_change().time : events_.top().time);
      while (has_change() && next_change().time <= now_)
        change(options_.changes[change_++]);
      while (!events_.empty() && events_.top().time <= latest(events_.top())) {
        const Event event = events_.top();
        events_.pop();
        happen(event);
      }
      for (const std::uint32_t slot : rates_.settle())
        set_rate(slot);
      if (options_.history != nullptr)
        for (const std::uint32_t link : rates_.moved_links())
          remember(link, rates_.load(link));
    }
    for (std::uint32_t link = 0; link < carried_.size(); ++link)
      remember(link, 0);
    return finish();
  }

 private:
  bool has_change() const { return change_ < options_.changes.size(); }
  const NetworkChange& next_change() const { return options_.changes[change_]; }
  // When an event may be that happens now: what ends at one moment but for rounding ends in one
  // step, and with a resolution what ends a little later.
  double latest(const Event& event) const {
    const double rounding = now_ * (1 + 1e-12);
    if (event.version == 0 || options_.resolution <= 0) return rounding;
    const double taken = event.time - report_.flows[event.flow].start;
    return std::max(rounding, now_ + std::min(options_.resolution, kMostEarly * taken));
  }

  void happen(const Event& event) {
    if (event.version == 0) {
      start(event.flow);
      return;
    }
    const std::uint32_t slot = slot_of_[event.flow];
    if (slot == kNone || active_[slot].version != event.version) return;  // its rate has changed
    if (active_[slot].leaves_first) {
      leave(slot);
      return;
    }
    book(active_[slot], rates_.path(slot), traffic_.flows()[event.flow].bytes);
    slot_of_[event.flow] = kNone;
    if (has_moves_) on_path_.remove(traffic_.flows()[event.flow].path, slot);
    const std::uint32_t path = active_[slot].has_left ? path_of(event.flow) : rates_.path(slot);
    rates_.remove(slot);
    const bool has_left = active_[slot].has_left;
    if (!has_left) report_.flows[event.flow].sent = now_;
    arrive(event.flow, path, active_[slot].rate);
    release(event.flow, !has_left, true);
  }

  // All of a flow has left its sender; switches hold the rest.
  void leave(std::uint32_t slot) {
    Active& active = active_[slot];
    const std::uint32_t path = rates_.path(slot);
    advance(slot);
    book(active, path, traffic_.flows()[active.flow].bytes - active.left);
    report_.bytes_of_link[paths_.links(path).front()] += paths_.amount(path, 0) * active.left;
    rates_.move(slot, paths_.send_ahead(path)->rest);
    active.rate = 0;
    ++active.version;
    active.leaves_first = false;
    active.has_left = true;
    report_.flows[active.flow].sent = now_;
    release(active.flow, true, false);
  }

  void change(const NetworkChange& one) {
    if (one.kind == NetworkChange::Kind::kCapacity) {
      rates_.set_capacity(one.which, one.capacity);
      return;
    }
    if (path_now_.empty()) {
      path_now_.resize(paths_.size());
      for (std::uint32_t path = 0; path < path_now_.size(); ++path)
        path_now_[path] = path;
    }
    path_now_[one.which] = one.other;
    for (const std::uint32_t slot : on_path_.of(one.which))
      move(slot, one.other);
  }

  void move(std::uint32_t slot, std::uint32_t path) {
    Active& active = active_[slot];
    advance(slot);
    book(active, rates_.path(slot), traffic_.flows()[active.flow].bytes - active.left);
    rates_.move(slot, path);
    active.rate = 0;
    ++active.version;
  }

  std::uint32_t path_of(std::uint32_t flow) const {
    const std::uint32_t path = traffic_.flows()[flow].path;
    return path_now_.empty() ? path : path_now_[path];
  }

  void start(std::uint32_t flow) {
    report_.flows[flow].start = now_;
    const std::uint32_t path = path_of(flow);
    if (paths_.links(path).empty() || traffic_.flows()[flow].bytes == 0) {
      report_.flows[flow].sent = now_;
      arrive(flow, path, 0);
      release(flow, true, true);
      return;
    }
    const std::uint32_t slot = rates_.add(path);
    slot_of_[flow] = slot;
    if (slot == active_.size()) active_.emplace_back();
    active_[slot] = {
        .left = traffic_.flows()[flow].bytes, .since = now_, .flow = flow, .version = 1};
    if (has_moves_) on_path_.add(traffic_.flows()[flow].path, slot);
  }

  // Counts what has crossed its links up to `done` of its bytes.
  void book(Active& active, std::uint32_t path, double done) {
    const std::span<const std::uint32_t> links = paths_.links(path);
    for (std::uint32_t hop = 0; hop < links.size(); ++hop)
      report_.bytes_of_link[links[hop]] += paths_.amount(path, hop) * (done - active.booked);
    active.booked = done;
  }

  // The last byte has crossed the path but for its latency.
  void arrive(std::uint32_t flow, std::uint32_t path, double rate) {
    FlowTimes& times = report_.flows[flow];
    times.arrived = now_ + paths_.latency(path, links_) +
                    paths_.loss_delay(path, traffic_.flows()[flow].bytes, rate, now_);
    report_.end = std::max(report_.end, Seconds{times.arrived});
    ++done_;
    if (options_.on_sent) options_.on_sent(flow, times);
  }

  // Those that wait for it to be sent, or to arrive, may start.
  void release(std::uint32_t flow, bool is_sent, bool is_arrived) {
    const FlowTimes times = report_.flows[flow];
    dependents_.for_each(flow, [&](std::uint32_t next, After after) {
      if (!(after == After::kSent ? is_sent : is_arrived)) return;
      FlowTimes& its = report_.flows[next];
      // Until it starts: when it may.
      its.start = std::max(its.start, after == After::kSent ? times.sent : times.arrived);
      if (--pending_dependencies_[next] == 0)
        events_.push({its.start + traffic_.flows()[next].delay, next, 0});
    });
  }

  void set_rate(std::uint32_t slot) {
    advance(slot);
    Active& active = active_[slot];
    active.rate = rates_.rate(slot);
    ++active.version;
    if (active.rate <= 0) return;
    double time = now_ + active.left / active.rate;
    active.leaves_first = false;
    if (const double leaves = leaves_at(slot); leaves < time * (1 - 1e-12)) {
      active.leaves_first = true;
      time = std::max(leaves, now_);
    }
    events_.push({time, active.flow, active.version});
  }

  // When the sender of a flow is done at this rate, if switches hold the rest: not sooner than its
  // first link can send all.
  double leaves_at(std::uint32_t slot) const {
    const Active& active = active_[slot];
    const std::uint32_t path = rates_.path(slot);
    const Paths::SendAhead* const ahead = active.has_left ? nullptr : paths_.send_ahead(path);
    if (ahead == nullptr) return kNever;
    const double first = links_.capacity[paths_.links(path).front()];
    return std::max(now_ + (active.left - ahead->bytes) / active.rate,
                    report_.flows[active.flow].start + traffic_.flows()[active.flow].bytes / first);
  }

  void advance(std::uint32_t slot) {
    Active& active = active_[slot];
    active.left = std::max(0.0, active.left - active.rate * (now_ - active.since));
    active.since = now_;
  }

  // Records the bytes that a link carried up to now; from now on it carries `rate`.
  void remember(std::uint32_t link, double rate) {
    options_.history->add(link, carried_[link].rate, carried_[link].since, now_);
    carried_[link] = {now_, rate};
  }

  // Flows that are due but have not started never do.
  void stop() {
    report_.is_stopped = true;
    report_.end = std::max(report_.end, Seconds{now_});
    for (; !events_.empty(); events_.pop())
      if (events_.top().version == 0) report_.flows[events_.top().flow] = {kNever, kNever, kNever};
    for (std::uint32_t slot = 0; slot < active_.size(); ++slot)
      if (slot_of_[active_[slot].flow] == slot) advance(slot);
  }

  Result<FlowReport> finish() {
    report_.unfinished = traffic_.flows().size() - done_;
    if (report_.unfinished == 0) {
      report_.is_stopped = false;
      return std::move(report_);
    }
    if (!report_.is_stopped &&
        std::ranges::all_of(slot_of_, [](std::uint32_t slot) { return slot == kNone; })) {
      return dependency_cycle_error(traffic_, pending_dependencies_);
    }
    for (std::uint32_t flow = 0; flow < slot_of_.size(); ++flow) {
      FlowTimes& times = report_.flows[flow];
      if (slot_of_[flow] != kNone) {
        const std::uint32_t slot = slot_of_[flow];
        book(active_[slot], rates_.path(slot), traffic_.flows()[flow].bytes - active_[slot].left);
        times.sent = times.arrived = kNever;
      }
      if (pending_dependencies_[flow] != 0) times = {kNever, kNever, kNever};
    }
    return std::move(report_);
  }

  const Links& links_;
  const Paths& paths_;
  const FlowGraph& traffic_;
  const FlowOptions& options_;
  const FlowDependents dependents_;
  IncrementalMaxMin rates_;
  FlowReport report_;
  double now_ = 0;
  std::size_t done_ = 0;
  std::size_t change_ = 0;  // the next one
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<std::uint32_t> pending_dependencies_;
  std::vector<std::uint32_t> slot_of_;   // per flow: its number in rates_; kNone: not in flight
  std::vector<Active> active_;           // by that number
  std::vector<Carried> carried_;         // per link, where history is kept
  bool has_moves_ = false;               // some path will lead elsewhere
  SlotsOfPaths on_path_;                 // in flight, by the path that they were to take, then
  std::vector<std::uint32_t> path_now_;  // per path, once one of them leads elsewhere
};

}  // namespace

Result<FlowReport> simulate_flows(const Links& links, const Paths& paths, const FlowGraph& traffic,
                                  const FlowOptions& options) {
  return Simulation(links, paths, traffic, options).run();
}

}  // namespace regatta::fabric
