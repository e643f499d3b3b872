#include "regatta/runtime/comm/internal/transport/tcp_link.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::comm {
namespace {

// Linux 6.15, <linux/tcp.h>: the longest wait before what was lost is sent again.
constexpr int kTcpRtoMaxMs = 44;

constexpr std::size_t kUnsentBytesMax = std::size_t{64} << 10;
// Packets that one connection reads per call, so that every connection gets its turn.
constexpr int kPacketsPerTurn = 8;

}  // namespace

// One packet on its way into a connection.
struct TcpLink::Outgoing {
  std::array<std::byte, kHeaderBytes> header{};
  const std::byte* payload = nullptr;
  std::size_t payload_bytes = 0;
  std::size_t done = 0;  // of header and payload together
  OutMessage* message = nullptr;
  std::string text;
  bool is_active = false;
};

struct TcpLink::Connection {
  os::UniqueFd fd;
  bool is_control = false;
  std::size_t index = 0;  // among the outgoing ones
  bool readable = true;
  bool writable = true;
  bool closed = false;
  Outgoing out;

  std::array<std::byte, kHeaderBytes> header_bytes{};
  std::size_t header_got = 0;
  PacketHeader header;
  std::byte* payload = nullptr;  // where the payload goes
  std::size_t payload_got = 0;
  std::vector<std::byte> own;  // for payloads that have no place of their own
};

TcpLink::TcpLink(int peer, TcpConnections connections, LinkSink& sink)
    : peer_(peer), sink_(sink), outgoing_(connections.out.size()) {
  const auto add = [this](os::UniqueFd fd, bool is_control) {
    auto connection = std::make_unique<Connection>();
    connection->fd = std::move(fd);
    connection->is_control = is_control;
    connections_.push_back(std::move(connection));
  };
  add(std::move(connections.control), true);
  for (std::size_t i = 0; i < connections.out.size(); ++i) {
    add(std::move(connections.out[i]), false);
    connections_.back()->index = i;
  }
  for (os::UniqueFd& fd : connections.in)
    add(std::move(fd), false);
}

TcpLink::~TcpLink() = default;

std::vector<int> TcpLink::fds() const {
  std::vector<int> fds;
  fds.reserve(connections_.size());
  for (const auto& connection : connections_)
    fds.push_back(connection->fd.get());
  return fds;
}

void TcpLink::post_control(const PacketHeader& header, std::string_view text) {
  if (!lost_) controls_.emplace_back(header, text);
}

void TcpLink::post_message(OutMessage& message) {
  if (lost_) return;
  (message.bytes <= kControlBytesMax ? small_ : bulk_).push_back(&message);
}

bool TcpLink::progress() {
  if (lost_) return false;
  bool moved = false;
  for (const auto& connection : connections_) {
    if (!lost_ && connection->readable) moved |= read_connection(*connection);
  }
  if (lost_) return true;
  moved |= write_connection(*connections_.front());
  for (std::size_t i = 0; i < outgoing_ && !lost_; ++i)
    moved |= write_connection(*connections_[1 + (first_out_ + i) % outgoing_]);
  if (outgoing_ > 0) first_out_ = (first_out_ + 1) % outgoing_;
  if (any_closed_ && !moved) check_closed();
  return moved;
}

bool TcpLink::next_outgoing(Connection& connection) {
  Outgoing& out = connection.out;
  out.message = nullptr;
  out.done = 0;
  if (!connection.is_control) {
    if (bulk_.empty() || connection.index >= connections_for(*bulk_.front())) return false;
    out.is_active = cut_fragment(out);
    return true;
  }
  PacketHeader header;
  if (!controls_.empty()) {
    header = controls_.front().first;
    out.text = std::move(controls_.front().second);
    controls_.pop_front();
    header.payload_bytes = static_cast<std::uint32_t>(out.text.size());
    out.payload = reinterpret_cast<const std::byte*>(out.text.data());
  } else if (!small_.empty()) {
    OutMessage& message = *small_.front();
    small_.pop_front();
    header = {.key = message.key,
              .message_bytes = message.bytes,
              .payload_bytes = static_cast<std::uint32_t>(message.bytes),
              .call = message.call};
    message.cut = message.bytes;
    out.message = &message;
    out.payload = message.data;
  } else {
    return false;
  }
  out.payload_bytes = header.payload_bytes;
  encode_header(header, out.header);
  out.is_active = true;
  return true;
}

std::size_t TcpLink::connections_for(const OutMessage& message) const {
  return message.connections > 0
             ? std::min(outgoing_, static_cast<std::size_t>(message.connections))
             : outgoing_;
}

// Fragments shrink towards the end of a message, so that all connections end at about one time.
bool TcpLink::cut_fragment(Outgoing& out) {
  OutMessage& message = *bulk_.front();
  const std::size_t left = message.bytes - message.cut;
  const std::size_t shares = 2 * connections_for(message);
  constexpr std::size_t kAlignment = 64;
  std::size_t bytes = std::clamp(left / shares, kFragmentBytesMin, kFragmentBytesMax);
  bytes = std::min(left, bytes / kAlignment * kAlignment);
  const PacketHeader header{.key = message.key,
                            .message_bytes = message.bytes,
                            .offset = message.cut,
                            .payload_bytes = static_cast<std::uint32_t>(bytes),
                            .call = message.call};
  encode_header(header, out.header);
  out.payload = message.data + message.cut;
  out.payload_bytes = bytes;
  out.message = &message;
  message.cut += bytes;
  if (message.cut == message.bytes) bulk_.pop_front();
  return true;
}

bool TcpLink::write_connection(Connection& connection) {
  if (!connection.writable || connection.closed) return false;
  Outgoing& out = connection.out;
  bool moved = false;
  // A data connection writes one fragment per turn: the others get theirs.
  for (int packets = connection.is_control ? kPacketsPerTurn : 1; packets > 0; --packets) {
    if (!out.is_active && !next_outgoing(connection)) return moved;
    while (out.done < kHeaderBytes + out.payload_bytes) {
      std::array<iovec, 2> parts{};
      std::size_t count = 0;
      if (out.done < kHeaderBytes)
        parts[count++] = {out.header.data() + out.done, kHeaderBytes - out.done};
      const std::size_t skip = out.done < kHeaderBytes ? 0 : out.done - kHeaderBytes;
      if (skip < out.payload_bytes)
        parts[count++] = {const_cast<std::byte*>(out.payload) + skip, out.payload_bytes - skip};
      msghdr message{};
      message.msg_iov = parts.data();
      message.msg_iovlen = count;
      const ssize_t sent = sendmsg(connection.fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) {
        connection.writable = false;
        if (errno == EAGAIN) return moved;
        // The packets that the peer sent before its end are read first; reading finds the end.
        note_reason(errno);
        connection.readable = true;
        return true;
      }
      out.done += static_cast<std::size_t>(sent);
      moved = true;
    }
    finish_outgoing(connection);
  }
  return moved;
}

void TcpLink::finish_outgoing(Connection& connection) {
  Outgoing& out = connection.out;
  out.is_active = false;
  if (out.message == nullptr) return;
  OutMessage& message = *std::exchange(out.message, nullptr);
  message.written += out.payload_bytes;
  sink_.sent(peer_, message, out.payload_bytes);
}

bool TcpLink::read_connection(Connection& connection) {
  bool moved = false;
  int packets = kPacketsPerTurn;
  while (packets > 0 && !lost_) {
    std::byte* into = nullptr;
    std::size_t wanted = 0;
    if (connection.header_got < kHeaderBytes) {
      into = connection.header_bytes.data() + connection.header_got;
      wanted = kHeaderBytes - connection.header_got;
    } else {
      into = connection.payload + connection.payload_got;
      wanted = connection.header.payload_bytes - connection.payload_got;
    }
    const ssize_t got = recv(connection.fd.get(), into, wanted, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      connection.readable = false;
      if (got == 0 || errno != EAGAIN) note_closed(connection, got == 0 ? 0 : errno);
      return moved;
    }
    moved = true;
    if (connection.header_got < kHeaderBytes) {
      connection.header_got += static_cast<std::size_t>(got);
      if (connection.header_got == kHeaderBytes) begin_payload(connection);
    } else {
      connection.payload_got += static_cast<std::size_t>(got);
    }
    if (lost_ || connection.header_got < kHeaderBytes) continue;
    if (connection.payload_got == connection.header.payload_bytes) {
      finish_packet(connection);
      --packets;
    }
  }
  return moved;
}

void TcpLink::begin_payload(Connection& connection) {
  auto header = decode_header(connection.header_bytes);
  if (!header) return lose(header.error().message);
  connection.header = *header;
  connection.payload_got = 0;
  connection.payload = nullptr;
  if (header->payload_bytes == 0) return;
  if (header->kind == PacketKind::kData) connection.payload = sink_.place(peer_, *header);
  if (connection.payload != nullptr) return;
  if (connection.own.empty()) connection.own.resize(kFragmentBytesMax);
  connection.payload = connection.own.data();
}

void TcpLink::finish_packet(Connection& connection) {
  connection.header_got = 0;
  if (connection.header.kind == PacketKind::kGoodbye) goodbye_ = true;
  sink_.arrived(peer_, connection.header, connection.payload);
}

void TcpLink::note_closed(Connection& connection, int error) {
  if (connection.closed) return;
  connection.closed = true;
  connection.readable = connection.writable = false;
  any_closed_ = true;
  // An abort message may have come on the control connection before this one was closed.
  if (!connections_.front()->closed) connections_.front()->readable = true;
  note_reason(error);
}

void TcpLink::note_reason(int error) {
  if (!close_reason_.empty()) return;
  close_reason_ = "connection lost";
  if (error != 0 && error != ECONNRESET && error != EPIPE)
    close_reason_ += " (" + os::errno_text(error) + ")";
}

// Called when all that came was read: a goodbye or the reason of an abort is known by now.
void TcpLink::check_closed() {
  const bool all_closed = std::all_of(connections_.begin(), connections_.end(),
                                      [](const auto& connection) { return connection->closed; });
  if (!goodbye_ || all_closed) lose(close_reason_);
}

void TcpLink::on_event(int slot, std::uint32_t events) {
  Connection& connection = *at(connections_, slot);
  if (connection.closed) return;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) connection.readable = true;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) connection.writable = true;
}

void TcpLink::abandon() {
  small_.clear();
  bulk_.clear();
  for (const auto& connection : connections_) {
    // Half-sent payloads are copied to memory of this link, so that the packets stay complete.
    Outgoing& out = connection->out;
    if (out.is_active && out.message != nullptr) {
      out.text.assign(reinterpret_cast<const char*>(out.payload), out.payload_bytes);
      out.payload = reinterpret_cast<const std::byte*>(out.text.data());
      out.message = nullptr;
    }
    if (connection->header_got == kHeaderBytes && connection->payload != connection->own.data()) {
      connection->own.resize(kFragmentBytesMax);
      connection->payload = connection->own.data();
    }
  }
}

bool TcpLink::is_backlogged() const {
  return !bulk_.empty() || !small_.empty() ||
         std::any_of(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection->out.is_active; });
}

bool TcpLink::is_flushed() {
  if (lost_) return true;
  if (!controls_.empty() || !small_.empty() || !bulk_.empty()) return false;
  return std::all_of(connections_.begin(), connections_.end(), [](const auto& connection) {
    if (connection->closed) return true;
    int unacknowledged = 0;
    return !connection->out.is_active &&
           (ioctl(connection->fd.get(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0);
  });
}

void TcpLink::shut_down() {
  for (const auto& connection : connections_)
    if (!connection->closed) shutdown(connection->fd.get(), SHUT_WR);
}

void TcpLink::lose(std::string_view reason) {
  if (lost_) return;
  lost_ = true;
  controls_.clear();
  small_.clear();
  bulk_.clear();
  const std::string text(reason);
  sink_.lost(peer_, text);
}

void tune_tcp(int fd, double peer_timeout_s, bool is_control) {
  const auto set = [fd](int level, int option, int value) {
    setsockopt(fd, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, is_control ? 1 : 0);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, std::max(1, static_cast<int>(std::ceil(peer_timeout_s)) - 1));
  const double user_timeout_s = is_control ? peer_timeout_s : 4 * peer_timeout_s;
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, std::max(1, static_cast<int>(user_timeout_s * 1000)));
  set(IPPROTO_TCP, kTcpRtoMaxMs, 1000);
  set(IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(kUnsentBytesMax));
}

}  // namespace regatta::comm
