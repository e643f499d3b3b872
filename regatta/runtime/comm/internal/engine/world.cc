#include "regatta/runtime/comm/internal/engine/world.h"

#include <algorithm>
#include <utility>

#include <pthread.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/clock.h"
#include "regatta/network/rdma/wire.h"
#include "regatta/runtime/comm/internal/transport/abort_message.h"

namespace regatta::comm {
namespace {

// How often a rank that is watched looks for operations that stand still.
constexpr Seconds kWatchInterval{0.2};
constexpr Seconds kTickMin{0.02};

// The interval of World::tick(), short enough for all that it checks.
Seconds tick_time(const WorldSetup& setup) {
  Seconds time = setup.peer_timeout / 4;
  if (setup.progress_timeout.value > 0) time = std::min(time, setup.progress_timeout / 8);
  if (setup.watch) time = std::min(time, kWatchInterval);
  return std::max(time, kTickMin);
}

// Null when the rank shares memory with no other.
Result<std::unique_ptr<ShmWorld>> start_shm_world(WorldSetup& setup) {
  ShmWorldSetup shared{.rank = setup.rank,
                       .own = std::move(setup.shared_segment),
                       .shared_segments = {},
                       .names = setup.names,
                       .drives_in_wait = setup.caller_moves_data,
                       .close_timeout = setup.peer_timeout};
  bool is_shared = false;
  for (PeerChannel& channel : setup.channels) {
    is_shared |= channel.shared_segment.is_open();
    shared.shared_segments.push_back(std::move(channel.shared_segment));
  }
  if (!is_shared || !shared.own.is_open()) return std::unique_ptr<ShmWorld>();
  return ShmWorld::start(std::move(shared));
}

}  // namespace

World::World(WorldSetup& setup, std::unique_ptr<ShmWorld> shm)
    : rank_(setup.rank),
      names_(std::move(setup.names)),
      peer_timeout_(setup.peer_timeout),
      tick_time_(tick_time(setup)),
      watch_(std::move(setup.watch)),
      rdma_(std::move(setup.rdma)),
      traffic_(names_.size()),
      links_(rank_, names_, *this),
      shm_(std::move(shm)),
      membership_(rank_, size(), [this] { links_.wake(); }),
      matcher_(links_.all(), names_),
      executor_(matcher_),
      peers_(rank_, names_.size(), peer_timeout_, os::monotonic_now()),
      stopped_({}),
      reporter_(executor_, shm_.get()),
      stalls_({.rank = rank_,
               .names = names_,
               .progress_timeout = setup.progress_timeout,
               .watch = watch_,
               .links = links_,
               .executor = executor_,
               .matcher = matcher_,
               .shm = shm_.get(),
               .stopped = stopped_}),
      utilization_({.rank = rank_,
                    .names = names_,
                    .watch = watch_,
                    .links = links_,
                    .executor = executor_,
                    .traffic = traffic_}),
      publisher_({.name = at(names_, rank_),
                  .watch = watch_,
                  .flight_dir = std::move(setup.flight_dir),
                  .executor = executor_,
                  .peers = peers_,
                  .traffic = traffic_}),
      ending_({.name = at(names_, rank_),
               .links = links_,
               .shm = shm_.get(),
               .membership = membership_,
               .peers = peers_,
               .inbox = inbox_,
               .executor = executor_,
               .publisher = publisher_}),
      now_(os::monotonic_now()),
      ticked_at_(now_) {}

Result<std::unique_ptr<World>> World::start(WorldSetup setup) {
  REGATTA_TRY(shm, start_shm_world(setup));
  std::unique_ptr<World> world(new World(setup, std::move(shm)));
  const int queue_pairs = std::clamp(setup.connections, 1, static_cast<int>(rdma::kQueuePairsMax));
  REGATTA_TRY_DO(world->links_.open(std::move(setup.channels), world->rdma_, queue_pairs));
  world->stopped_ = StoppedProcesses(world->links_.pids());
  world->thread_ = std::thread([w = world.get()] { w->run(); });
  pthread_setname_np(world->thread_.native_handle(), "regatta-coll");
  return world;
}

World::~World() {
  if (!thread_.joinable()) return;
  inbox_.close();
  links_.wake();
  thread_.join();
}

void World::submit(std::vector<std::unique_ptr<Operation>> operations) {
  if (inbox_.submit(std::move(operations))) links_.wake();
}

void World::stop() {
  membership_.stop();
  if (shm_ != nullptr) shm_->settle();
}

void World::run() {
  for (;;) {
    now_ = os::monotonic_now();
    bool moved = accept_operations(now_);
    moved |= serve_membership();
    moved |= links_.progress();
    moved |= advance(now_);
    ending_.announce(now_);
    if (now_ - ticked_at_ >= (stalls_.is_diagnosing() ? kStallDiagnosisTick : tick_time_))
      tick(now_);
    if (!moved && ending_.close(now_)) return;
    if (moved) {
      if (links_.wait(0)) now_ = os::monotonic_now();
      links_.dispatch_events();
    } else {
      sleep();
    }
  }
}

bool World::accept_operations(Seconds now) {
  if (inbox_.is_closed()) ending_.begin_close(now + peer_timeout_);
  if (ending_.has_failed()) return false;
  std::vector<std::unique_ptr<Operation>> accepted = inbox_.consume();
  for (auto& operation : accepted) {
    if (operation->number == 0 && operation->is_collective) reporter_.add_group(operation->group);
    executor_.submit(std::move(operation), now);
  }
  if (!accepted.empty() && peers_.any_departed()) check_departed();
  return !accepted.empty();
}

bool World::advance(Seconds now) {
  if (ending_.has_failed()) return false;
  const bool moved = executor_.advance(now);
  // The operations that start after one that ended may wait for a rank that has left.
  if (moved && peers_.any_departed()) check_departed();
  if (matcher_.error()) fail(*matcher_.error());
  if (executor_.error())
    fail({executor_.error()->code, at(names_, rank_) + ": " + executor_.error()->message});
  if (!ending_.has_failed() && matcher_.contradicted() != nullptr && !stalls_.is_diagnosing())
    if (const auto error = stalls_.check(now)) fail(*error);
  return moved;
}

void World::sleep() {
  const bool has_work = links_.arm() || !inbox_.begin_sleep();
  Seconds rest = ticked_at_ + (stalls_.is_diagnosing() ? kStallDiagnosisTick : tick_time_) - now_;
  if (ending_.is_under_way()) rest = std::min(rest, Seconds{0.001});
  // Rounded up: cut to 0 ms, the last part of a millisecond would be spent spinning.
  const int rest_ms = static_cast<int>(std::max(rest.value, 0.0) * 1000) + 1;
  if (links_.wait(has_work ? 0 : rest_ms)) now_ = os::monotonic_now();
  links_.dispatch_events();
  inbox_.end_sleep();
  links_.disarm();
}

void World::tick(Seconds now) {
  // This process itself stood still: what the peers sent meanwhile is not read yet.
  const bool stood_still = now - ticked_at_ > tick_time_ * 2 + Seconds{0.5};
  ticked_at_ = now;
  if (stood_still) {
    stalls_.reset(now);
    peers_.restart_silence_timeouts(now);
  }
  if (rdma_ != nullptr) expire_memory(*rdma_);
  for (const int peer : peers_.due_heartbeats(now))
    links_.post_control(peer, {.kind = PacketKind::kHeartbeat});
  const std::vector<int> silent = peers_.silent(now);
  for (const int peer : silent)
    membership_.mark_lost(peer);
  if (!silent.empty())
    fail({Code::kUnavailable,
          at(names_, silent.front()) + ": no sign of life for " + format_seconds(peer_timeout_)});
  if (peers_.any_departed()) check_departed();
  ending_.fail_with_shared_error();
  if (!ending_.has_failed()) {
    matcher_.repeat_requests();
    if (const auto error = stalls_.check(now)) fail(*error);
  }
  if (!watch_) return;
  utilization_.check(now, !ending_.has_failed() && !stalls_.is_diagnosing());
  publisher_.publish(now);
}

// Fails when an operation waits for a rank that has left in order.
void World::check_departed() {
  const auto fail_over = [&](int rank, const std::string& operation) {
    fail({Code::kUnavailable,
          at(names_, rank) + ": left the job while " + operation + " waits for it"});
  };
  for (const auto& group : executor_.groups())
    for (const auto& operation : group->active)
      for (const int rank : waited_for(*operation))
        if (peers_.has_departed(rank)) return fail_over(rank, operation->name);
  if (shm_ == nullptr) return;
  for (int rank = 0; rank < size(); ++rank) {
    if (!peers_.has_departed(rank)) continue;
    if (const auto operation = shm_->operation_waiting_for(rank))
      return fail_over(rank, *operation);
  }
}

bool World::serve_membership() {
  is_stop_requested_ |= membership_.consume_stop_request();
  if (is_stop_requested_ && !ending_.has_failed())
    fail({Code::kUnavailable, at(names_, rank_) + ": called shrink(); call it on all ranks"});
  if (is_stop_requested_ && ending_.has_ended_operations()) {
    is_stop_requested_ = false;
    membership_.confirm_stop();
  }
  const std::vector<std::string> statements = membership_.consume_statements();
  for (const std::string& statement : statements)
    links_.post_to_peers(PacketKind::kStatement, statement);
  return !statements.empty();
}

void World::reply_to_query(int peer, const MessageKey& key) {
  stopped_.refresh(now_);
  const ProgressReply reply{.report = reporter_.report(peer, key),
                            .stopped_rank = stopped_.first(),
                            .busiest = utilization_.busiest()};
  links_.post_control(peer, {.kind = PacketKind::kReply, .key = key}, encode_progress_reply(reply));
}

void World::receive_reply(int peer, const MessageKey& key, std::string_view text) {
  const auto reply = decode_progress_reply(text);
  if (!reply || ending_.has_failed()) return;
  utilization_.receive(peer, reply->busiest);
  stalls_.receive_reply(peer, key, *reply);
  // The reply may complete what is needed to say which rank called something else.
  if (matcher_.contradicted() != nullptr)
    if (const auto error = stalls_.check(now_)) fail(*error);
}

void World::fail(const Error& error) {
  ending_.fail(error);
  stalls_.clear();
}

std::byte* World::place(int peer, const PacketHeader& header) {
  peers_.hear(peer, now_);
  if (ending_.has_failed()) return nullptr;
  return matcher_.place(peer, header, now_);
}

void World::arrived(int peer, const PacketHeader& header, const std::byte* payload) {
  peers_.hear(peer, now_);
  const std::string_view text(reinterpret_cast<const char*>(payload),
                              payload == nullptr ? 0 : header.payload_bytes);
  switch (header.kind) {
    case PacketKind::kAbort:
      // All messages of the peer are here: operations that have all they need end well.
      while (!ending_.has_failed() && executor_.advance(now_)) {
      }
      return fail(decode_abort(text));
    case PacketKind::kGoodbye:
      peers_.mark_goodbye(peer);
      return membership_.mark_lost(peer);
    case PacketKind::kStatement:
      return membership_.receive(peer, text);
    case PacketKind::kQuery:
      return reply_to_query(peer, header.key);
    case PacketKind::kReply:
      return receive_reply(peer, header.key, text);
    default:
      if (ending_.has_failed()) return;
      return matcher_.arrived(peer, header, payload, now_);
  }
}

void World::sent(int peer, OutMessage& message, std::size_t bytes) {
  if (links_.is_shared(peer))
    traffic_.add_shared(peer, bytes);
  else
    traffic_.add_network(peer, bytes);
  matcher_.sent(message, now_);
}

void World::lost(int peer, std::string_view reason) {
  peers_.mark_departed(peer);
  membership_.mark_lost(peer);
  if (peers_.said_goodbye(peer)) return check_departed();
  fail({Code::kUnavailable, at(names_, peer) + ": " + std::string(reason)});
}

}  // namespace regatta::comm
