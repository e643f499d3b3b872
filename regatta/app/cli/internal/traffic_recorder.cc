#include "regatta/app/cli/internal/traffic_recorder.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::cli {
namespace {

// A dump of all connections of the machine costs as much as some hundred questions.
constexpr Seconds kLooksForNew{1.0};

// "10.0.0.1" of "10.0.0.1:4711".
std::string host_of(const probe::Endpoint& endpoint, bool is_ipv6) {
  const std::string text = probe::endpoint_text(endpoint, is_ipv6);
  return text.substr(0, text.rfind(':'));
}

// Samples a connection between two watched servers at one end only.
Result<probe::FlowCounters> counters_in(const os::UniqueFd& network,
                                        const std::map<std::string, std::string>& watched) {
  REGATTA_TRY(scope, os::NetworkNamespaceScope::enter(network));
  return probe::FlowCounters::open(
      {.look_for_new = kLooksForNew, .is_left_out = [&watched](const probe::Connection& one) {
         return watched.contains(host_of(one.remote, one.is_ipv6)) && !probe::is_counted_here(one);
       }});
}

diag::RankOperation operation_of(const comm::FlightView& flight) {
  return {.number = flight.number,
          .group = flight.group,
          .sequence = flight.operation.sequence,
          .call = flight.operation.call,
          .bytes = flight.operation.bytes,
          .is_transfer = flight.operation.lane == comm::Lane::kTransfer,
          .started = flight.operation.started,
          .ended = flight.operation.progressed};
}

// Adds the operations of `view` that `rank` does not have yet.
void add_operations(diag::WatchedRank& rank, const comm::RankView& view) {
  for (const comm::FlightView& flight : view.flights)
    if (rank.operations.empty() || flight.number > rank.operations.back().number)
      rank.operations.push_back(operation_of(flight));
}

}  // namespace

TrafficRecorder::TrafficRecorder(Seconds interval)
    : start_(os::monotonic_now()), interval_(interval) {}

Result<std::unique_ptr<TrafficRecorder>> TrafficRecorder::open(
    const std::optional<lab::LabInfo>& lab, Seconds interval) {
  std::unique_ptr<TrafficRecorder> watch(new TrafficRecorder(interval));
  if (lab) {
    REGATTA_TRY_DO(lab::enter_user_namespace(*lab));
    for (const lab::LabServer& server : lab->servers)
      for (const std::string& address : server.nic_addresses)
        watch->addresses_[address.substr(0, address.find('/'))] = server.name;
    for (const lab::LabServer& server : lab->servers) {
      REGATTA_TRY(network, lab::open_network(*lab, server.name));
      REGATTA_TRY(inode, os::namespace_inode(network));
      REGATTA_TRY(counters, counters_in(network, watch->addresses_));
      watch->places_.push_back({server.name, inode, std::move(counters)});
    }
  } else {
    REGATTA_TRY(network, os::open_network_namespace());
    REGATTA_TRY(inode, os::namespace_inode(network));
    REGATTA_TRY(counters, probe::FlowCounters::open({.look_for_new = kLooksForNew}));
    watch->places_.push_back({"", inode, std::move(counters)});
  }
  watch->sample_ranks();
  watch->thread_ = std::thread([self = watch.get()] { self->run(); });
  return watch;
}

TrafficRecorder::~TrafficRecorder() {
  static_cast<void>(stop().has_value());
}

Status TrafficRecorder::stop() {
  {
    const MutexLock lock(mutex_);
    has_to_stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
  const MutexLock lock(mutex_);
  return status_;
}

void TrafficRecorder::run() {
  for (std::uint64_t tick = 1;; ++tick) {
    for (std::size_t place = 0; place < places_.size(); ++place) {
      Status status = sample(place);
      const MutexLock lock(mutex_);
      used_ = os::thread_cpu_time();
      if (!status) status_ = std::move(status);
      if (has_to_stop_ || !status_) return;
    }
    const Seconds now = os::monotonic_now();
    const auto due = static_cast<std::uint64_t>((now - start_) / interval_);
    tick = std::max(tick, due);  // what was missed is spread over the intervals it belongs to
    os::sleep_for(start_ + interval_ * static_cast<double>(tick + 1) - now);
  }
}

// Bytes that were counted from one look to the next belong to all intervals between them.
void TrafficRecorder::add(std::vector<double>& series, double bytes, Seconds from,
                          Seconds to) const {
  const double begin = (from - start_) / interval_;
  const double end = (to - start_) / interval_;
  if (!(bytes > 0) || !(end > begin)) return;
  const auto last = static_cast<std::size_t>(std::floor(end));
  if (series.size() <= last) series.resize(last + 1, 0.0);
  for (auto at = static_cast<std::size_t>(std::max(0.0, begin)); at <= last; ++at) {
    const double low = std::max(begin, static_cast<double>(at));
    const double high = std::min(end, static_cast<double>(at + 1));
    if (high > low) series[at] += bytes * (high - low) / (end - begin);
  }
}

// `told`: the connection at this position of the last sample; null: none.
void TrafficRecorder::add_counters(std::size_t place, const probe::ConnectionCounters& one,
                                   ObservedConnection*& told) {
  if (told == nullptr || told->last.cookie != one.cookie) {
    const auto [entry, is_new] = seen_.try_emplace({place, one.cookie});
    told = &entry->second;
    if (is_new) {
      *told = {.first = one.at, .last = one, .retransmits_before = one.retransmits, .place = place};
      ends_.add(one.connection, *told);
      return;
    }
  }
  ObservedConnection& seen = *told;
  if (one.at == seen.last.at) return;  // was not asked this time
  add(seen.sent, static_cast<double>(one.sent_bytes - seen.last.sent_bytes), seen.last.at, one.at);
  add(seen.received, static_cast<double>(one.received_bytes - seen.last.received_bytes),
      seen.last.at, one.at);
  seen.last = one;
}

Status TrafficRecorder::sample(std::size_t place) {
  REGATTA_TRY(all, places_[place].counters.read());
  const MutexLock lock(mutex_);
  std::vector<ObservedConnection*>& told = places_[place].told;
  told.resize(all->size(), nullptr);
  for (std::size_t i = 0; i < all->size(); ++i)
    if (!probe::is_loopback((*all)[i].connection)) add_counters(place, (*all)[i], told[i]);
  return {};
}

void TrafficRecorder::sample_ranks() {
  const std::vector<comm::RankView> views = comm::inspect_job("");
  for (const comm::RankView& view : views) {
    const auto network = os::network_namespace_of(view.pid);
    const auto place = std::ranges::find_if(
        places_, [&](const ObservedServer& one) { return network == one.namespace_inode; });
    if (place == places_.end()) continue;
    const std::vector<std::uint64_t> sockets = probe::sockets_of(view.pid);
    const MutexLock lock(mutex_);
    auto known = std::ranges::find_if(ranks_, [&](const diag::WatchedRank& rank) {
      return rank.world == view.world && rank.rank == view.rank;
    });
    if (known == ranks_.end())
      known = ranks_.insert(known, {.pid = view.pid,
                                    .job = view.job.empty() ? "without a name" : view.job,
                                    .world = view.world,
                                    .rank = view.rank,
                                    .server = place->server.empty() ? view.server : place->server,
                                    .operations = {}});
    add_operations(*known, view);
    for (const std::uint64_t inode : sockets)
      owners_[inode] = static_cast<int>(known - ranks_.begin());
  }
}

// Null where it is not watched.
const TrafficRecorder::ObservedConnection* TrafficRecorder::paired_end(
    const ObservedConnection& seen) const {
  return ends_.paired_end(seen.last.connection, seen);
}

int TrafficRecorder::rank_of(const ObservedConnection* seen) const {
  if (seen == nullptr) return -1;
  const auto owner = owners_.find(seen->last.inode);
  return owner == owners_.end() ? -1 : owner->second;
}

std::string TrafficRecorder::server_of(const probe::Connection& connection) const {
  const std::string host = host_of(connection.remote, connection.is_ipv6);
  const auto server = addresses_.find(host);
  return server == addresses_.end() ? host : server->second;
}

// The bytes it sent; where its counters were not read, the bytes that the other end received.
const std::vector<double>& TrafficRecorder::sent_by(const ObservedConnection& seen) const {
  if (probe::is_counted_here(seen.last.connection)) return seen.sent;
  const ObservedConnection* const other = paired_end(seen);
  return other == nullptr ? seen.sent : other->received;
}

// The listening end of each connection, by number: the end that more connections share. A source
// port may serve a few connections to different places.
std::map<probe::Connection, std::uint32_t> TrafficRecorder::listeners() const {
  std::map<probe::Endpoint, std::set<probe::Endpoint>> peers;
  for (const auto& [name, ends] : ends_.by_name()) {
    peers[name.local].insert(name.remote);
    peers[name.remote].insert(name.local);
  }
  std::map<probe::Endpoint, std::uint32_t> numbers;
  std::map<probe::Connection, std::uint32_t> listeners;
  for (const auto& [name, ends] : ends_.by_name()) {
    const std::size_t here = peers[name.local].size();
    const std::size_t there = peers[name.remote].size();
    if (here == there) continue;
    const auto next = static_cast<std::uint32_t>(numbers.size() + 1);
    listeners[name] =
        numbers.try_emplace(here > there ? name.local : name.remote, next).first->second;
  }
  return listeners;
}

diag::TrafficRecord TrafficRecorder::record() const {
  const MutexLock lock(mutex_);
  const auto listener_of = listeners();
  diag::TrafficRecord record{.start = start_, .interval = interval_, .ranks = ranks_};
  const Seconds elapsed = os::monotonic_now() - start_;
  record.intervals = static_cast<std::size_t>(std::max(0.0, elapsed / interval_));
  record.cost = elapsed.value > 0 ? used_ / elapsed : 0;
  record.connections = seen_.size();
  for (const auto& [key, seen] : seen_) {
    const probe::ConnectionCounters& last = seen.last;
    const ObservedServer& place = places_[seen.place];
    const std::string here = place.server.empty()
                                 ? host_of(last.connection.local, last.connection.is_ipv6)
                                 : place.server;
    diag::WatchedFlow flow{.from = here,
                           .to = server_of(last.connection),
                           .from_rank = rank_of(&seen),
                           .to_rank = rank_of(paired_end(seen)),
                           .listener = 0,
                           .retransmits = last.retransmits - seen.retransmits_before,
                           .round_trip = last.round_trip,
                           .bytes = sent_by(seen)};
    flow.bytes.resize(record.intervals, 0.0);
    const auto listener = listener_of.find(last.connection);
    if (listener != listener_of.end()) flow.listener = listener->second;
    record.flows.push_back(flow);
    // Traffic from a watched server was counted there.
    const bool is_counted_there = std::ranges::any_of(
        places_, [&](const ObservedServer& other) { return other.server == flow.to; });
    if (is_counted_there) continue;
    std::swap(flow.from, flow.to);
    std::swap(flow.from_rank, flow.to_rank);
    flow.retransmits = 0;
    flow.bytes = seen.received;
    flow.bytes.resize(record.intervals, 0.0);
    record.flows.push_back(std::move(flow));
  }
  return record;
}

}  // namespace regatta::cli
