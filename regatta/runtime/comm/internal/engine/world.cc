#include "regatta/runtime/comm/internal/engine/world.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/rdma/wire.h"
#include "regatta/runtime/comm/internal/transport/abort_message.h"
#include "regatta/runtime/comm/internal/transport/self_link.h"
#include "regatta/runtime/comm/internal/transport/shm_link.h"
#include "regatta/runtime/comm/internal/transport/socket.h"
#include "regatta/runtime/comm/internal/transport/tcp_link.h"

namespace regatta::comm {
namespace {

constexpr std::uint64_t kWakeEvent = ~std::uint64_t{0};
// How long the end of a world waits for its last bytes to be acknowledged.
constexpr Seconds kFlushTime{2.0};
// How long the callers of a failed world wait at most for the peers to have its abort message.
constexpr Seconds kAnnounceTime{0.2};

// How often a rank that is watched looks round for operations that stand still.
constexpr Seconds kLookTime{0.2};

}  // namespace

World::World(WorldSetup setup)
    : rank_(setup.rank),
      names_(std::move(setup.names)),
      peer_timeout_(setup.peer_timeout),
      progress_timeout_(setup.progress_timeout),
      watch_(std::move(setup.watch)),
      flight_dir_(std::move(setup.flight_dir)),
      rdma_(std::move(setup.rdma)),
      is_shared_(names_.size()),
      pids_(names_.size()),
      membership_(setup.rank, static_cast<int>(names_.size()), [this] { wake(); }),
      matcher_(links_, names_),
      executor_(matcher_),
      peers_(names_.size()),
      now_(os::monotonic_now()),
      ticked_at_(now_),
      is_held_(names_.size()),
      network_bytes_(names_.size()),
      shared_bytes_(names_.size()) {
  tick_time_ = peer_timeout_ / 4;
  if (progress_timeout_.value > 0) tick_time_ = std::min(tick_time_, progress_timeout_ / 8);
  if (watch_) tick_time_ = std::min(tick_time_, kLookTime);
  tick_time_ = std::max(tick_time_, Seconds{0.02});
  for (PeerState& peer : peers_)
    peer.heard_at = peer.heartbeat_sent_at = now_;
}

Result<std::unique_ptr<World>> World::start(WorldSetup setup) {
  std::vector<PeerChannel> channels = std::move(setup.channels);
  ShmWorldSetup shared{.rank = setup.rank,
                       .own = std::move(setup.shared_segment),
                       .shared_segments = {},
                       .names = setup.names,
                       .drives_in_wait = setup.caller_moves_data,
                       .close_timeout = setup.peer_timeout};
  bool is_shared = false;
  for (PeerChannel& channel : channels) {
    is_shared |= channel.shared_segment.is_open();
    shared.shared_segments.push_back(std::move(channel.shared_segment));
  }
  const int queue_pairs = std::clamp(setup.connections, 1, static_cast<int>(rdma::kQueuePairsMax));
  std::unique_ptr<World> world(new World(std::move(setup)));
  if (is_shared && shared.own.is_open()) {
    REGATTA_TRY(shm, ShmWorld::start(std::move(shared)));
    world->shm_ = std::move(shm);
  }
  world->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  world->wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!world->epoll_ || !world->wake_) return os::errno_error("start the progress thread");
  REGATTA_TRY_DO(world->make_links(std::move(channels), queue_pairs));
  world->thread_ = std::thread([w = world.get()] { w->run(); });
  pthread_setname_np(world->thread_.native_handle(), "regatta-coll");
  return world;
}

Status World::make_links(std::vector<PeerChannel> channels, int queue_pairs) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeEvent}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
    return os::errno_error("watch the wake-up descriptor");
  for (int peer = 0; peer < size(); ++peer) {
    const auto index = static_cast<std::size_t>(peer);
    is_shared_[index] = peer == rank_ || channels[index].segment;
    if (peer != rank_ && channels[index].segment)
      pids_[index] = peer_pid(channels[index].wake_socket.get());
    REGATTA_TRY(link, make_link(peer, std::move(channels[index]), queue_pairs));
    int slot = 0;
    for (const int fd : link->fds())
      REGATTA_TRY_DO(listen_to(fd, peer, slot++));
    links_.push_back(std::move(link));
  }
  return {};
}

Result<std::unique_ptr<PeerLink>> World::make_link(int peer, PeerChannel channel, int queue_pairs) {
  LinkSink& sink = *this;
  std::unique_ptr<PeerLink> link;
  if (peer == rank_) {
    link = std::make_unique<SelfLink>(peer, sink);
  } else if (channel.segment) {
    link = std::make_unique<ShmLink>(peer, std::move(*channel.segment), channel.is_creator,
                                     std::move(channel.wake_socket), sink);
  } else if (channel.uses_rdma) {
    return make_verbs_link({.peer = peer,
                            .control = std::move(channel.tcp.control),
                            .device = rdma_,
                            .queue_pairs = queue_pairs},
                           sink);
  } else {
    link = std::make_unique<TcpLink>(peer, std::move(channel.tcp), sink);
  }
  return link;
}

Status World::listen_to(int fd, int peer, int slot) {
  const auto key = static_cast<std::uint64_t>(peer) << 32 | static_cast<std::uint64_t>(slot);
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u64 = key}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return os::errno_error("watch the connection to " + name(peer));
  return {};
}

World::~World() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  wake();
  thread_.join();
}

void World::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

void World::submit(std::vector<std::unique_ptr<Operation>> operations) {
  bool must_wake = false;
  {
    const std::lock_guard lock(mutex_);
    for (auto& operation : operations)
      if (error_)
        operation->handle->finish(error_, os::monotonic_now());
      else
        submitted_.push_back(std::move(operation));
    if (error_) return;
    must_wake = std::exchange(is_sleeping_, false);
  }
  if (must_wake) wake();
}

void World::restart_traffic() {
  for (auto* counters : {&network_bytes_, &shared_bytes_})
    for (Counter& counter : *counters)
      counter.bytes.store(0, std::memory_order_relaxed);
}

Communicator::Traffic World::traffic() const {
  Communicator::Traffic traffic;
  for (const Counter& counter : network_bytes_)
    traffic.network_bytes.push_back(counter.bytes.load(std::memory_order_relaxed));
  for (const Counter& counter : shared_bytes_)
    traffic.shared_bytes.push_back(counter.bytes.load(std::memory_order_relaxed));
  return traffic;
}

void World::run() {
  for (;;) {
    now_ = os::monotonic_now();
    bool moved = take_operations(now_);
    moved |= serve_membership();
    for (const auto& link : links_)
      moved |= link->progress();
    moved |= advance(now_);
    if (announced_ && (is_flushed() || now_ >= announce_until_)) end_operations(now_);
    if (now_ - ticked_at_ >= (stall_diagnoses_.empty() ? tick_time_ : kStallDiagnosisTick))
      tick(now_);
    if (close_until_ && !announced_ && !moved && close_step(now_)) return;
    if (moved)
      handle_events(0);
    else
      sleep();
  }
}

bool World::take_operations(Seconds now) {
  std::vector<std::unique_ptr<Operation>> taken;
  {
    const std::lock_guard lock(mutex_);
    if (!failed_) taken.swap(submitted_);
    if (is_closing_ && !close_until_) close_until_ = now + peer_timeout_;
  }
  for (auto& operation : taken) {
    if (operation->number == 0 && operation->is_collective) remember(operation->group);
    executor_.submit(std::move(operation), now);
  }
  if (!taken.empty() && any_departed_) check_departed();
  return !taken.empty();
}

bool World::advance(Seconds now) {
  if (failed_) return false;
  const bool moved = executor_.advance(now);
  // What an ended operation made way for may wait for somebody who left.
  if (moved && any_departed_) check_departed();
  if (matcher_.error()) fail(*matcher_.error());
  if (executor_.error())
    fail({executor_.error()->code, name(rank_) + ": " + executor_.error()->message});
  if (matcher_.contradicted() != nullptr && stall_diagnoses_.empty()) check_stalls(now);
  return moved;
}

void World::sleep() {
  bool has_work = false;
  for (const auto& link : links_)
    has_work |= link->arm();
  if (!has_work) {
    const std::lock_guard lock(mutex_);
    has_work = !submitted_.empty();
    is_sleeping_ = !has_work;
  }
  Seconds rest = ticked_at_ + (stall_diagnoses_.empty() ? tick_time_ : kStallDiagnosisTick) - now_;
  if (close_until_ || announced_) rest = std::min(rest, Seconds{0.001});
  // Rounded up, or the last part of a millisecond would be waited for with no rest at all.
  const int rest_ms = static_cast<int>(std::max(rest.value, 0.0) * 1000) + 1;
  handle_events(has_work ? 0 : rest_ms);
  {
    const std::lock_guard lock(mutex_);
    is_sleeping_ = false;
  }
  for (const auto& link : links_)
    link->disarm();
}

void World::handle_events(int timeout_ms) {
  std::array<epoll_event, 64> events{};
  const int count =
      epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  if (count > 0) now_ = os::monotonic_now();
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeEvent) {
      std::uint64_t value = 0;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &value, sizeof value);
      continue;
    }
    links_[event.data.u64 >> 32]->on_event(static_cast<int>(event.data.u64 & 0xffffffffU),
                                           event.events);
  }
}

void World::tick(Seconds now) {
  // This process itself stood still: what the peers sent meanwhile is not read yet.
  const bool stood_still = now - ticked_at_ > tick_time_ * 2 + Seconds{0.5};
  ticked_at_ = now;
  if (stood_still) {
    for (const StallDiagnosis& ended : std::exchange(stall_diagnoses_, {}))
      note_end(ended, now);
    for (PeerState& peer : peers_)
      peer.heard_at = now;
  }
  if (!failed_) matcher_.repeat_requests();
  if (rdma_ != nullptr) expire_memory(*rdma_);
  send_heartbeats(now);
  check_silence(now);
  if (any_departed_) check_departed();
  take_shared_error();
  check_stalls(now);
  if (!watch_) return;
  check_link_utilization(now);
  show_progress(now);
}

void World::send_heartbeats(Seconds now) {
  for (int rank = 0; rank < size(); ++rank) {
    PeerState& state = peer(rank);
    if (rank == rank_ || state.departed || now - state.heartbeat_sent_at < peer_timeout_ / 5)
      continue;
    state.heartbeat_sent_at = now;
    links_[static_cast<std::size_t>(rank)]->post_control({.kind = PacketKind::kHeartbeat}, {});
  }
}

void World::check_silence(Seconds now) {
  std::optional<int> longest;
  for (int rank = 0; rank < size(); ++rank) {
    const PeerState& state = peer(rank);
    if (rank == rank_ || state.departed || state.said_goodbye) continue;
    if (now - state.heard_at <= peer_timeout_) continue;
    membership_.mark_lost(rank);
    if (!longest || state.heard_at < peer(*longest).heard_at) longest = rank;
  }
  if (longest)
    fail({Code::kUnavailable,
          name(*longest) + ": no sign of life for " + format_seconds(peer_timeout_)});
}

void World::check_departed() {
  for (const auto& group : executor_.groups())
    for (const auto& operation : group->active)
      for (const int rank : waited_for(*operation))
        if (peer(rank).departed)
          return fail({Code::kUnavailable,
                       name(rank) + ": left the job while " + operation->name + " waits for it"});
  if (shm_ == nullptr) return;
  for (int rank = 0; rank < size(); ++rank) {
    if (!peer(rank).departed) continue;
    if (const auto operation = shm_->operation_waiting_for(rank))
      return fail({Code::kUnavailable,
                   name(rank) + ": left the job while " + *operation + " waits for it"});
  }
}

// What one communicator runs into ends its relatives and the other ranks too.
void World::take_shared_error() {
  if (shm_ == nullptr || failed_) return;
  if (const auto error = shm_->error()) fail(*error);
}

// The end of a world, one phase after the other; true when all is done.
bool World::close_step(Seconds now) {
  const bool in_time = now < *close_until_;
  switch (close_phase_) {
    case ClosePhase::kOperations:
      if (!executor_.is_idle() && in_time) return false;
      take_shared_error();
      if (!executor_.is_idle())
        fail({Code::kConflict, name(rank_) + ": the communicator was closed with operations under "
                                             "way: wait for their handles first"});
      close_phase_ = ClosePhase::kMessages;
      close_until_ = now + kFlushTime;
      return false;
    case ClosePhase::kMessages:
      if (!is_flushed() && in_time) return false;
      for (const auto& link : links_)
        link->post_control({.kind = PacketKind::kGoodbye}, {});
      close_phase_ = ClosePhase::kGoodbye;
      return false;
    case ClosePhase::kGoodbye:
      if (!is_flushed() && in_time) return false;
      for (const auto& link : links_)
        link->shut_down();
      close_phase_ = ClosePhase::kAcknowledged;
      return true;
    case ClosePhase::kAcknowledged:
      return true;
  }
  return true;
}

// Every peer that is not lost has all that was sent to it.
bool World::is_flushed() const {
  for (int rank = 0; rank < size(); ++rank) {
    const bool is_gone = membership_.is_lost(rank) && !peers_[as_index(rank)].said_goodbye;
    if (!is_gone && !links_[as_index(rank)]->is_flushed()) return false;
  }
  return true;
}

// Ends the world with its first error. The peers get the error before the callers of this rank do:
// a caller may exit at once, and its closed connections would look like the cause.
void World::fail(const Error& error) {
  if (failed_) return;
  failed_ = true;
  announced_ = error;
  announce_until_ = os::monotonic_now() + kAnnounceTime;
  stall_diagnoses_.clear();
  const std::string text = encode_abort(error);
  for (int rank = 0; rank < size(); ++rank) {
    links_[as_index(rank)]->abandon();
    if (rank != rank_) links_[as_index(rank)]->post_control({.kind = PacketKind::kAbort}, text);
  }
}

// The peers know of the error, or had their time: it ends all operations of this rank.
void World::end_operations(Seconds now) {
  const Error error = *std::exchange(announced_, std::nullopt);
  // A caller that gets the error may free its communicator, and the file shows those that exist.
  if (watch_) write_flight(error);
  std::vector<std::unique_ptr<Operation>> submitted;
  {
    const std::lock_guard lock(mutex_);
    error_ = error;
    submitted.swap(submitted_);
  }
  for (const auto& operation : submitted)
    operation->handle->finish(error, now);
  executor_.fail_all(error, now);
  if (shm_ != nullptr) shm_->fail(error);
}

void World::note_abort(std::string_view text) {
  // What the peer sent before it gave up is here: operations that have all they need end well.
  while (!failed_ && executor_.advance(now_)) {
  }
  fail(decode_abort(text));
}

std::byte* World::place(int peer_rank, const PacketHeader& header) {
  peer(peer_rank).heard_at = now_;
  if (failed_) return nullptr;
  return matcher_.place(peer_rank, header, now_);
}

void World::arrived(int peer_rank, const PacketHeader& header, const std::byte* payload) {
  PeerState& state = peer(peer_rank);
  state.heard_at = now_;
  const std::string_view text(reinterpret_cast<const char*>(payload),
                              payload == nullptr ? 0 : header.payload_bytes);
  switch (header.kind) {
    case PacketKind::kAbort:
      return note_abort(text);
    case PacketKind::kGoodbye:
      state.said_goodbye = true;
      return membership_.mark_lost(peer_rank);
    case PacketKind::kStatement:
      return membership_.receive(peer_rank, text);
    case PacketKind::kQuery:
      return reply_to_query(peer_rank, header.key);
    case PacketKind::kReply:
      return note_reply(peer_rank, header.key, text);
    default:
      if (failed_) return;
      return matcher_.arrived(peer_rank, header, payload, now_);
  }
}

void World::sent(int peer_rank, OutMessage& message, std::size_t bytes) {
  const auto index = static_cast<std::size_t>(peer_rank);
  auto& counters = is_shared_[index] ? shared_bytes_ : network_bytes_;
  counters[index].bytes.fetch_add(static_cast<long long>(bytes), std::memory_order_relaxed);
  matcher_.sent(message, now_);
}

void World::lost(int peer_rank, std::string_view reason) {
  PeerState& state = peer(peer_rank);
  state.departed = any_departed_ = true;
  membership_.mark_lost(peer_rank);
  if (state.said_goodbye) return check_departed();
  fail({Code::kUnavailable, name(peer_rank) + ": " + std::string(reason)});
}

}  // namespace regatta::comm
