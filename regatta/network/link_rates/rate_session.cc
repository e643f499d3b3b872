#include "regatta/network/link_rates/rate_session.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "regatta/base/core/text.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/link_rates/internal/nic_load.h"
#include "regatta/network/link_rates/internal/train_messages.h"
#include "regatta/network/link_rates/internal/train_schedule.h"

namespace regatta::link_rates {
namespace {

constexpr Seconds kTrainTimeout{1};  // until a train counts as lost
constexpr Seconds kRemembered{0.5};  // trains that a late report may show as disturbed
// A path is explained when its rate is so close to what the verdicts let expect.
constexpr double kExplained = 0.1;
constexpr std::size_t kFailuresMost = 16;
constexpr std::size_t kSeparatorsMost = 64;

BytesPerSecond median(std::vector<BytesPerSecond> rates) {
  if (rates.empty()) return {};
  std::ranges::sort(rates);
  return rates[rates.size() / 2];
}

}  // namespace

struct RateSession::Impl {
  struct Train {
    std::size_t path = 0;
    TrainShape shape;
    Seconds started;
    bool is_sent = false;  // the order is
  };
  struct Ended {
    std::size_t path = 0;
    Seconds at;
  };

  const topo::Graph& graph;
  const fabric::Routes& routes;
  const RatePlan plan;
  const RateSessionOptions options;
  TrainSchedule schedule;
  std::map<std::uint64_t, Train> trains;  // on their way, by number
  std::uint64_t next_train;
  std::vector<Order> orders;
  std::vector<bool> has_agent;            // by NodeId
  std::vector<NicLoad> loads;             // by link; of NICs
  std::vector<bool> is_busy;              // by link: the NIC has other traffic
  std::vector<bool> unusable;             // by directed link: busy, or of a server without an agent
  std::vector<bool> busy;                 // by directed link
  std::deque<Ended> ended;                // lately
  std::map<std::size_t, double> offered;  // by path, the least
  std::vector<double> taken;              // by directed link: time of trains at its described rate
  std::vector<std::string> failures;
  int settled_rounds = 0;

  Impl(const topo::Graph& its_graph, const fabric::Routes& its_routes, RatePlan its_plan,
       std::uint64_t salt, RateSessionOptions its_options)
      : graph(its_graph),
        routes(its_routes),
        plan(std::move(its_plan)),
        options(its_options),
        schedule(graph, {.share = options.share,
                         .trains = options.trains,
                         .tries = 3 * options.trains,
                         .together = options.together}),
        next_train(salt),
        has_agent(graph.nodes.size()),
        loads(graph.links.size()),
        is_busy(graph.links.size()),
        busy(2 * graph.links.size()),
        taken(2 * graph.links.size()) {
    schedule.add(plan.paths);
    update_unusable();
  }

  NodeId server_of(LinkId nic) const { return graph.links[nic.index()].a; }

  // Links of servers without an agent cannot be used either.
  void update_unusable() {
    std::vector<bool>& result = unusable;
    result = busy;
    for (std::size_t i = 0; i < graph.links.size(); ++i) {
      if (graph.links[i].a_nic < 0 || has_agent[graph.links[i].a.index()]) continue;
      result[2 * i] = true;
      result[2 * i + 1] = true;
    }
  }

  TrainOrder order_of(std::uint64_t number, const Train& train, bool is_sender) const {
    return {.is_sender = is_sender,
            .train = number,
            .flow = schedule.path(train.path).flow,
            .shape = train.shape};
  }

  void start(std::size_t path, Seconds now) {
    const Train train{.path = path, .shape = schedule.shape(path), .started = now};
    const TrainPath& over = schedule.path(path);
    for (const LinkId nic : {over.from, over.to})
      loads[nic.index()].begin_train();
    orders.push_back(
        {server_of(over.to), order_line(order_of(next_train, train, /*is_sender=*/false))});
    trains.emplace(next_train++, train);
  }

  void end(std::map<std::uint64_t, Train>::iterator of, std::optional<BytesPerSecond> rate,
           Seconds now) {
    const Train& train = of->second;
    const TrainPath& path = schedule.path(train.path);
    const Bytes bytes = train.is_sent ? frame_bytes(train.shape) : Bytes{};
    const Bytes answers = train.is_sent ? answer_bytes(train.shape) : Bytes{};
    loads[path.from.index()].end_train(bytes, answers, now);
    loads[path.to.index()].end_train(Bytes{}, path.time_to_live() ? Bytes{} : bytes, now);
    for (const std::uint32_t link : path.loaded_links()) {
      taken[link] += (bytes / graph.links[link / 2].rate).value;
      taken[link ^ 1U] += (answers / graph.links[link / 2].rate).value;
    }
    schedule.finish(train.path, rate, now);
    if (rate) ended.push_back({train.path, now});
    trains.erase(of);
  }

  void accept_load(NodeId server, const LoadReport& report, Seconds now) {
    bool has_changed = false;
    std::optional<Seconds> disturbed_since;
    for (const NicBytes& nic : report.nics) {
      const auto link = topo::link_of(nic.address);
      if (!link || link->index() >= graph.links.size() || server_of(*link) != server ||
          graph.links[link->index()].a_nic < 0)
        continue;
      NicLoad& load = loads[link->index()];
      if (!load.add(nic.sent, nic.received, now)) continue;
      const bool is_loaded = load.rate() > options.idle_below * graph.links[link->index()].rate;
      if (is_loaded && !is_busy[link->index()])
        disturbed_since = std::min(disturbed_since.value_or(now), load.since());
      has_changed = has_changed || is_loaded != is_busy[link->index()];
      is_busy[link->index()] = is_loaded;
    }
    if (!has_changed) return;
    std::vector<LinkId> nics;
    for (std::size_t i = 0; i < is_busy.size(); ++i)
      if (is_busy[i]) nics.push_back(LinkId{static_cast<int>(i)});
    busy = links_of_traffic(graph, routes, nics);
    update_unusable();
    if (disturbed_since) discard_disturbed(*disturbed_since);
  }

  void discard_disturbed(Seconds since) {
    for (const Ended& one : ended) {
      if (one.at < since) continue;
      const bool is_disturbed = std::ranges::any_of(schedule.path(one.path).links,
                                                    [&](std::uint32_t link) { return busy[link]; });
      if (is_disturbed) schedule.discard_last(one.path);
    }
    std::erase_if(ended, [&](const Ended& one) { return one.at >= since; });
  }

  void fail(const std::string& why) {
    if (failures.size() < kFailuresMost && std::ranges::find(failures, why) == failures.end())
      failures.push_back(why);
  }

  void accept_about_train(NodeId server, const AgentReport& report, Seconds now);
};

void RateSession::Impl::accept_about_train(NodeId server, const AgentReport& report, Seconds now) {
  const std::uint64_t number = std::visit(
      [](const auto& one) -> std::uint64_t {
        if constexpr (requires { one.train; })
          return one.train;
        else
          return 0;
      },
      report);
  const auto at = trains.find(number);
  if (at == trains.end()) return;  // it came too late
  Train& train = at->second;
  const TrainPath& path = schedule.path(train.path);
  const bool is_receiver = server == server_of(path.to);
  if (!is_receiver && server != server_of(path.from)) return;
  if (std::holds_alternative<TrainAwaited>(report) && is_receiver && !train.is_sent) {
    train.is_sent = true;
    orders.push_back(
        {server_of(path.from), order_line(order_of(number, train, /*is_sender=*/true))});
  } else if (const auto* const sent = std::get_if<TrainSent>(&report); sent && !is_receiver) {
    const auto [known, is_new] = offered.emplace(train.path, sent->offered.value);
    // The best that it could: processor time is lost to others now and then.
    if (!is_new) known->second = std::max(known->second, sent->offered.value);
  } else if (const auto* const arrived = std::get_if<TrainReceived>(&report);
             arrived && is_receiver) {
    std::optional<BytesPerSecond> rate;
    if (arrived->rate.value > 0) rate = arrived->rate;
    end(at, rate, now);
  } else if (const auto* const failed = std::get_if<TrainFailed>(&report)) {
    fail("server " + graph.nodes[server.index()].name + ": " + failed->why);
    end(at, std::nullopt, now);
  }
}

RateSession::RateSession(const topo::Graph& graph, const fabric::Routes& routes, RatePlan plan,
                         std::uint64_t salt, RateSessionOptions options)
    : impl_(std::make_unique<Impl>(graph, routes, std::move(plan), salt, options)) {}
RateSession::~RateSession() = default;
RateSession::RateSession(RateSession&&) noexcept = default;
RateSession& RateSession::operator=(RateSession&&) noexcept = default;

void RateSession::add_agent(NodeId server, Seconds) {
  Impl& impl = *impl_;
  impl.has_agent[server.index()] = true;
  impl.update_unusable();
  LoadOrder order;
  for (std::size_t i = 0; i < impl.graph.links.size(); ++i) {
    const topo::Link& link = impl.graph.links[i];
    if (link.a == server && link.a_nic >= 0 && order.addresses.size() < kNicsMost)
      order.addresses.push_back(topo::address_of(LinkId{static_cast<int>(i)}));
  }
  impl.orders.push_back({server, order_line(order)});
}

Status RateSession::accept(NodeId server, std::string_view line, Seconds now) {
  REGATTA_TRY(report, parse_agent_report(line));
  if (const auto* const load = std::get_if<LoadReport>(&report))
    impl_->accept_load(server, *load, now);
  else
    impl_->accept_about_train(server, report, now);
  return {};
}

std::vector<RateSession::Order> RateSession::due_orders(Seconds now) {
  Impl& impl = *impl_;
  for (auto at = impl.trains.begin(); at != impl.trains.end();) {
    const auto train = at++;
    if (now - train->second.started > kTrainTimeout) impl.end(train, std::nullopt, now);
  }
  while (!impl.ended.empty() && now - impl.ended.front().at > kRemembered)
    impl.ended.pop_front();
  if (const int rounds = impl.schedule.rounds(impl.unusable); rounds > impl.settled_rounds) {
    impl.settled_rounds = rounds;
    settle_explained();
  }
  while (const auto path = impl.schedule.start_next(now, impl.unusable))
    impl.start(*path, now);
  return std::exchange(impl.orders, {});
}

bool RateSession::is_done() const {
  return impl_->schedule.is_done();
}
std::size_t RateSession::arrived() const {
  return impl_->schedule.arrived();
}
std::size_t RateSession::paths() const {
  return impl_->schedule.paths();
}
std::size_t RateSession::finished() const {
  return impl_->schedule.finished();
}
double RateSession::largest_share(Seconds time) const {
  const std::vector<double>& taken = impl_->taken;
  return taken.empty() || time.value <= 0 ? 0 : std::ranges::max(taken) / time.value;
}
const std::vector<std::string>& RateSession::failures() const {
  return impl_->failures;
}

std::vector<std::uint32_t> RateSession::busy_links() const {
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < impl_->busy.size(); ++link)
    if (impl_->busy[link]) links.push_back(link);
  return links;
}

std::vector<PathMeasurement> RateSession::measurements() const {
  const Impl& impl = *impl_;
  std::vector<PathMeasurement> all;
  for (std::size_t i = 0; i < impl.schedule.paths(); ++i) {
    const auto offered = impl.offered.find(i);
    all.push_back({.path = impl.schedule.path(i),
                   .rate = median(impl.schedule.rates(i)),
                   .offered = {offered == impl.offered.end() ? 0 : offered->second},
                   .trains = static_cast<int>(impl.schedule.rates(i).size())});
  }
  return all;
}

RateVerdicts RateSession::verdicts() const {
  return decide_rates(impl_->graph, measurements(), impl_->plan.paths,
                      {.slow_below = impl_->options.slow_below});
}

// Trains are repeated where their rate is a surprise, and twice over a link that is slow.
void RateSession::settle_explained() {
  Impl& impl = *impl_;
  const RateVerdicts now = verdicts();
  const std::vector<PathMeasurement> measured = measurements();
  for (std::size_t i = 0; i < measured.size(); ++i) {
    if (measured[i].trains == 0) continue;
    const double error = std::abs(std::log(measured[i].rate / now.expected[i]));
    const std::uint32_t last = measured[i].path.loaded_links().back();
    const bool ends_at_slow =
        std::ranges::any_of(now.slow, [&](const SlowLink& slow) { return slow.link == last; });
    const bool is_fast = measured[i].rate >= now.expected[i];
    if ((error < kExplained || is_fast) && (!ends_at_slow || measured[i].trains >= 2))
      impl.schedule.settle(i);
  }
}

bool RateSession::add_separators() {
  std::vector<TrainPath> paths;
  for (const SlowLink& slow : verdicts().slow)
    for (const SlowLinkAlternative& other : slow.alternatives) {
      if (!other.separator || paths.size() >= kSeparatorsMost) continue;
      if (std::ranges::find(paths, *other.separator) == paths.end())
        paths.push_back(*other.separator);
    }
  impl_->schedule.add(paths);
  impl_->settled_rounds = 0;
  return !paths.empty();
}

}  // namespace regatta::link_rates
