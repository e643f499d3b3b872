#include "regatta/runtime/comm/internal/transport/connector.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

namespace regatta::comm {
namespace {

constexpr Seconds kRetryTime{0.05};

}  // namespace

Connector::Connector(int peer, PeerEndpoint to, TcpAddress source, const RankHandshake& handshake,
                     int shared_segment, os::UniqueFd fd)
    : peer_(peer),
      to_(std::move(to)),
      source_(std::move(source)),
      connection_(handshake.connection),
      is_shared_(handshake.connections == 0),
      out_(encode_handshake(handshake)),
      fd_(std::move(fd)),
      own_shared_segment_(shared_segment) {}

// A unix socket that refuses is out of reach (another network namespace) and stays so.
Connector::State Connector::fail(Seconds now) {
  if (is_shared_) return State::kNoSharedMemory;
  fd_.reset();
  source_.port = 0;  // it may be taken
  retry_at_ = now + kRetryTime;
  return State::kInProgress;
}

Connector::State Connector::start(Seconds now) {
  if (is_shared_) {
    auto segment = RingSegment::create();
    if (!segment) return State::kNoSharedMemory;
    segment_ = std::move(*segment);
  }
  auto fd =
      is_shared_ ? connect_unix(to_.unix_name) : connect_tcp(source_, {to_.address, to_.port});
  if (!fd) return fail(now);
  fd_ = std::move(*fd);
  is_connected_ = false;
  sent_ = 0;
  in_.clear();
  return State::kInProgress;
}

bool Connector::send_handshake() {
  const std::span<const std::byte> rest = std::span(out_).subspan(sent_);
  std::array<int, 2> fds{segment_ ? segment_->fd() : -1, own_shared_segment_};
  // The memory files travel with the first byte.
  const bool is_first = is_shared_ && sent_ == 0;
  const std::size_t count = !is_first ? 0 : own_shared_segment_ >= 0 ? 2 : 1;
  const ssize_t sent = send_with_fds(fd_.get(), rest, std::span(fds).first(count));
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  sent_ += static_cast<std::size_t>(sent);
  return true;
}

Connector::State Connector::serve(Seconds now) {
  if (!fd_) return now < retry_at_ ? State::kInProgress : start(now);
  if (!is_connected_) {
    pollfd ready{fd_.get(), POLLOUT, 0};
    if (poll(&ready, 1, 0) == 0) return State::kInProgress;
    if (connect_error(fd_.get()) != 0) return fail(now);
    is_connected_ = true;
  }
  if (sent_ < out_.size()) return send_handshake() ? State::kInProgress : fail(now);
  std::array<std::byte, kHandshakeReplyBytes> buffer{};
  std::vector<os::UniqueFd> fds;
  const ssize_t got =
      receive_with_fds(fd_.get(), std::span(buffer).first(kHandshakeReplyBytes - in_.size()), fds);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return State::kInProgress;
  if (got <= 0) return fail(now);
  if (!fds.empty()) shared_segment_ = open_shared_segment(std::move(fds.front()));
  in_.insert(in_.end(), buffer.begin(), buffer.begin() + got);
  const auto reply = decode_handshake_reply(in_);
  if (reply && !reply->has_value()) return State::kInProgress;
  // Another rank, or a stranger, may have got the port of a rank that ended.
  if (!reply || (*reply)->rank != static_cast<std::uint32_t>(peer_)) return fail(now);
  return (*reply)->status == HandshakeStatus::kNoSharedMemory ? State::kNoSharedMemory
                                                              : State::kDone;
}

}  // namespace regatta::comm
