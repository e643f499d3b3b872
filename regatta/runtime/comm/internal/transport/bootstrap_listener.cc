#include "regatta/runtime/comm/internal/transport/bootstrap_listener.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/os/log.h"
#include "regatta/base/os/socket.h"

namespace regatta::comm {
namespace {

constexpr Seconds kHandshakeTimeout{5.0};
constexpr std::size_t kReadBytes = 512;
constexpr std::size_t kMemoryFds = 2;  // of a handshake: segment, shared segment

}  // namespace

Result<BootstrapListener> BootstrapListener::open(std::string host, const std::string& address,
                                                  int shared_segment, std::size_t pending_max) {
  BootstrapListener listener;
  listener.pending_max_ = pending_max;
  listener.shared_segment_ = shared_segment;
  listener.host_ = std::move(host);
  REGATTA_TRY(tcp, listen_tcp(address));
  listener.tcp_ = std::move(tcp);
  const std::string name = random_unix_name();
  auto local = listen_unix(name);
  if (local) {
    listener.unix_ = std::move(*local);
    listener.unix_name_ = name;
  } else {
    os::log_warning("coll: no shared memory, TCP is used instead: " + local.error().message);
  }
  return listener;
}

void BootstrapListener::add_poll_fds(std::vector<pollfd>& fds) const {
  if (pending_.size() < pending_max_) {
    fds.push_back({tcp_.fd.get(), POLLIN, 0});
    if (unix_) fds.push_back({unix_.get(), POLLIN, 0});
  }
  for (const auto& pending : pending_)
    fds.push_back({pending->fd.get(), POLLIN, 0});
}

std::vector<AcceptedConnection> BootstrapListener::serve(Seconds now, const ReadyFds& ready,
                                                         const AdmissionCheck& check) {
  std::vector<AcceptedConnection> accepted_connections;
  if (ready.has(tcp_.fd.get())) accept_pending(tcp_.fd, false, now);
  if (unix_ && ready.has(unix_.get())) accept_pending(unix_, true, now);
  std::erase_if(pending_, [&](const auto& pending) {
    // Most handshakes have arrived when their connection is accepted.
    const bool is_new = pending->in.empty();
    if ((is_new || ready.has(pending->fd.get())) &&
        read_handshake(*pending, check, accepted_connections) == ReadState::kClosed)
      return true;
    if (now < pending->deadline) return false;
    reject(*pending, "it did not show a job token in time");
    return true;
  });
  return accepted_connections;
}

void BootstrapListener::accept_pending(const os::UniqueFd& listener, bool is_shared, Seconds now) {
  while (pending_.size() < pending_max_) {
    os::UniqueFd fd = os::accept_connection(listener);
    if (!fd) return;
    auto pending = std::make_unique<PendingConnection>();
    pending->fd = std::move(fd);
    pending->is_shared = is_shared;
    pending->deadline = now + kHandshakeTimeout;
    pending_.push_back(std::move(pending));
  }
}

ssize_t BootstrapListener::receive(PendingConnection& pending) {
  std::array<std::byte, kReadBytes> buffer{};
  const ssize_t got = receive_with_fds(pending.fd.get(), buffer, pending.memory);
  if (got > 0) pending.in.insert(pending.in.end(), buffer.begin(), buffer.begin() + got);
  if (pending.memory.size() > kMemoryFds) pending.memory.resize(kMemoryFds);
  return got;
}

BootstrapListener::ReadState BootstrapListener::read_handshake(
    PendingConnection& pending, const AdmissionCheck& check,
    std::vector<AcceptedConnection>& accepted_connections) {
  const ssize_t got = receive(pending);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return ReadState::kIncomplete;
  if (got <= 0) {
    // A connection without a byte only tests whether the process lives, as a LivenessProbe does.
    if (!pending.in.empty())
      reject(pending, "it closed the connection before it showed a job token");
    return ReadState::kClosed;
  }
  auto handshake = decode_handshake(pending.in);
  if (handshake && !handshake->has_value()) return ReadState::kIncomplete;
  std::string why = handshake ? check(**handshake) : handshake.error().message;
  if (why.empty() && pending.is_shared != ((*handshake)->connections == 0))
    why = "it connected to the wrong listener";
  if (why.empty())
    accept(pending, std::move(**handshake), accepted_connections);
  else
    reject(pending, why);
  return ReadState::kClosed;
}

void BootstrapListener::accept(PendingConnection& pending, RankHandshake handshake,
                               std::vector<AcceptedConnection>& accepted_connections) const {
  HandshakeReply reply{.status = HandshakeStatus::kAccepted,
                       .rank = static_cast<std::uint32_t>(rank_)};
  AcceptedConnection accepted{.handshake = std::move(handshake),
                              .fd = std::move(pending.fd),
                              .segment = std::nullopt,
                              .shared_segment = {}};
  if (pending.is_shared) {
    pending.memory.resize(kMemoryFds);
    auto segment = RingSegment::open(std::move(pending.memory[0]));
    if (pending.memory[1])
      accepted.shared_segment = open_shared_segment(std::move(pending.memory[1]));
    if (segment)
      accepted.segment = std::move(*segment);
    else
      reply.status = HandshakeStatus::kNoSharedMemory;
  }
  const std::vector<std::byte> bytes = encode_handshake_reply(reply);
  const std::size_t fds = pending.is_shared && shared_segment_ >= 0 ? 1 : 0;
  const ssize_t sent = send_with_fds(accepted.fd.get(), bytes, {&shared_segment_, fds});
  // A peer that lost the connection tries again; one without shared memory connects by TCP.
  const bool is_in = sent == static_cast<ssize_t>(bytes.size());
  if (is_in && reply.status == HandshakeStatus::kAccepted)
    accepted_connections.push_back(std::move(accepted));
}

void BootstrapListener::reject(const PendingConnection& pending, const std::string& why) const {
  os::log_warning("coll: " + host_ + " refused a connection from " +
                  describe_peer(pending.fd.get()) + ": " + why);
}

}  // namespace regatta::comm
