#include "regatta/runtime/comm/internal/engine/link_set.h"

#include <cstdint>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "regatta/runtime/comm/internal/transport/self_link.h"
#include "regatta/runtime/comm/internal/transport/shm_link.h"
#include "regatta/runtime/comm/internal/transport/socket.h"
#include "regatta/runtime/comm/internal/transport/tcp_link.h"

namespace regatta::comm {
namespace {

constexpr std::uint64_t kWakeEvent = ~std::uint64_t{0};

}  // namespace

LinkSet::LinkSet(int rank, const std::vector<std::string>& names, LinkSink& sink)
    : rank_(rank), names_(names), sink_(sink), is_shared_(names.size()), pids_(names.size()) {}

Status LinkSet::open(std::vector<PeerChannel> channels, const std::shared_ptr<VerbsDevice>& rdma,
                     int queue_pairs) {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !wake_) return os::errno_error("start the progress thread");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWakeEvent}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
    return os::errno_error("watch the wake-up descriptor");
  for (int peer = 0; peer < static_cast<int>(names_.size()); ++peer) {
    PeerChannel& channel = at(channels, peer);
    is_shared_[as_index(peer)] = peer == rank_ || channel.segment;
    if (peer != rank_ && channel.segment) at(pids_, peer) = peer_pid(channel.wake_socket.get());
    REGATTA_TRY(link, make_link(peer, std::move(channel), rdma, queue_pairs));
    int slot = 0;
    for (const int fd : link->fds())
      REGATTA_TRY_DO(add_to_epoll(fd, peer, slot++));
    links_.push_back(std::move(link));
  }
  return {};
}

Result<std::unique_ptr<PeerLink>> LinkSet::make_link(int peer, PeerChannel channel,
                                                     const std::shared_ptr<VerbsDevice>& rdma,
                                                     int queue_pairs) {
  std::unique_ptr<PeerLink> link;
  if (peer == rank_) {
    link = std::make_unique<SelfLink>(peer, sink_);
  } else if (channel.segment) {
    link = std::make_unique<ShmLink>(peer, std::move(*channel.segment), channel.is_creator,
                                     std::move(channel.wake_socket), sink_);
  } else if (channel.uses_rdma) {
    return make_verbs_link({.peer = peer,
                            .control = std::move(channel.tcp.control),
                            .device = rdma,
                            .queue_pairs = queue_pairs},
                           sink_);
  } else {
    link = std::make_unique<TcpLink>(peer, std::move(channel.tcp), sink_);
  }
  return link;
}

Status LinkSet::add_to_epoll(int fd, int peer, int slot) {
  const auto key = static_cast<std::uint64_t>(peer) << 32 | static_cast<std::uint64_t>(slot);
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u64 = key}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return os::errno_error("watch the connection to " + at(names_, peer));
  return {};
}

void LinkSet::post_to_peers(PacketKind kind, std::string_view text) {
  for (int peer = 0; peer < static_cast<int>(links_.size()); ++peer)
    if (peer != rank_) post_control(peer, {.kind = kind}, text);
}

bool LinkSet::progress() {
  bool moved = false;
  for (const auto& link : links_)
    moved |= link->progress();
  return moved;
}

bool LinkSet::arm() {
  bool has_work = false;
  for (const auto& link : links_)
    has_work |= link->arm();
  return has_work;
}

void LinkSet::disarm() {
  for (const auto& link : links_)
    link->disarm();
}

bool LinkSet::wait(int timeout_ms) {
  const int count =
      epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms);
  event_count_ = count > 0 ? as_index(count) : 0;
  return event_count_ > 0;
}

void LinkSet::dispatch_events() {
  for (std::size_t i = 0; i < event_count_; ++i) {
    const epoll_event& event = events_[i];
    if (event.data.u64 == kWakeEvent) {
      std::uint64_t value = 0;
      [[maybe_unused]] const ssize_t got = read(wake_.get(), &value, sizeof value);
      continue;
    }
    at(links_, event.data.u64 >> 32)
        ->on_event(static_cast<int>(event.data.u64 & 0xffffffffU), event.events);
  }
}

void LinkSet::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
}

}  // namespace regatta::comm
