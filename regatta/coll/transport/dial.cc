#include "regatta/coll/transport/dial.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "regatta/coll/transport/socket.h"

namespace regatta::coll {
namespace {

constexpr Seconds kRetryTime{0.05};

}  // namespace

Dial::Dial(int peer, Endpoint to, std::string source, const Hello& hello)
    : peer_(peer),
      to_(std::move(to)),
      source_(std::move(source)),
      connection_(hello.connection),
      is_shared_(hello.connections == 0),
      out_(encode_hello(hello)) {}

// A unix socket that refuses is out of reach (another network namespace) and stays so.
Dial::State Dial::fail(Seconds now) {
  if (is_shared_) return State::kNoSharedMemory;
  fd_.reset();
  retry_at_ = now + kRetryTime;
  return State::kGoesOn;
}

Dial::State Dial::start(Seconds now) {
  if (is_shared_) {
    auto segment = ShmSegment::create();
    if (!segment) return State::kNoSharedMemory;
    segment_ = std::move(*segment);
  }
  auto fd = is_shared_ ? dial_unix(to_.unix_name) : dial_tcp(source_, to_.address, to_.port);
  if (!fd) return fail(now);
  fd_ = std::move(*fd);
  is_connected_ = false;
  sent_ = 0;
  in_.clear();
  return State::kGoesOn;
}

bool Dial::send_hello() {
  iovec part{out_.data() + sent_, out_.size() - sent_};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (is_shared_ && sent_ == 0) {
    // The memory file travels with the first byte.
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = segment_->fd();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  const ssize_t sent = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  sent_ += static_cast<std::size_t>(sent);
  return true;
}

Dial::State Dial::serve(Seconds now) {
  if (!fd_) return now < retry_at_ ? State::kGoesOn : start(now);
  if (!is_connected_) {
    pollfd ready{fd_.get(), POLLOUT, 0};
    if (poll(&ready, 1, 0) == 0) return State::kGoesOn;
    if (connect_error(fd_.get()) != 0) return fail(now);
    is_connected_ = true;
  }
  if (sent_ < out_.size()) return send_hello() ? State::kGoesOn : fail(now);
  std::array<std::byte, kReplyBytes> buffer{};
  const ssize_t got = recv(fd_.get(), buffer.data(), kReplyBytes - in_.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return State::kGoesOn;
  if (got <= 0) return fail(now);
  in_.insert(in_.end(), buffer.begin(), buffer.begin() + got);
  const auto reply = decode_reply(in_);
  if (reply && !reply->has_value()) return State::kGoesOn;
  // Another rank, or a stranger, may have got the port of a rank that ended.
  if (!reply || (*reply)->rank != static_cast<std::uint32_t>(peer_)) return fail(now);
  return (*reply)->welcome == Welcome::kNoSharedMemory ? State::kNoSharedMemory : State::kDone;
}

}  // namespace regatta::coll
