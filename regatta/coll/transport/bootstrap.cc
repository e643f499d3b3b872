#include "regatta/coll/transport/bootstrap.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "regatta/coll/transport/hello.h"
#include "regatta/coll/transport/shm_ring.h"
#include "regatta/coll/transport/socket.h"
#include "regatta/coll/transport/tcp_link.h"
#include "regatta/core/log.h"
#include "regatta/core/text.h"
#include "regatta/core/units_text.h"
#include "regatta/os/clock.h"
#include "regatta/os/errno_text.h"

namespace regatta::coll {
namespace {

constexpr Seconds kPatience{10.0};   // added to the peer timeout
constexpr Seconds kRetryTime{0.05};  // between attempts to connect
constexpr Seconds kHelloTime{5.0};   // a caller shows who it is within
constexpr std::size_t kReadBytes = 512;

// A connection that this rank makes.
struct Dial {
  int peer = -1;
  std::uint32_t connection = 0;
  bool is_shared = false;
  os::UniqueFd fd;  // empty: to be tried at `retry_at`
  Seconds retry_at;
  bool is_connected = false;
  std::vector<std::byte> out;
  std::size_t sent = 0;
  std::vector<std::byte> in;
  std::optional<ShmSegment> segment;
};

// A connection that somebody made to this rank, before it has shown who it is.
struct Guest {
  os::UniqueFd fd;
  bool is_shared = false;
  Seconds deadline;
  std::vector<std::byte> in;
  os::UniqueFd memory;
};

class Bootstrap {
 public:
  Bootstrap(int rank, int world_size, const Options& options)
      : rank_(rank), world_size_(world_size), options_(options) {}

  Status listen();
  std::string endpoint() const;
  Status read_endpoints(const std::vector<std::string>& texts);
  Result<Meeting> meet_all();

 private:
  enum class DialEnd { kGoesOn, kDone, kFallBack };

  void plan_dials(int peer, bool is_shared);
  void start_dial(Dial& dial, Seconds now);
  void retry(Dial& dial, Seconds now);
  DialEnd serve_dial(Dial& dial, Seconds now);
  bool send_hello(Dial& dial);
  void serve_dials(Seconds now);
  void accept_all(int listener, bool is_shared, Seconds now);
  bool serve_guest(Guest& guest);
  static ssize_t receive(Guest& guest);
  std::string refusal(const Guest& guest, const Hello& hello) const;
  void admit(Guest& guest, const Hello& hello);
  void refuse(const Guest& guest, const std::string& why) const;
  void serve_guests(Seconds now);
  void wait(Seconds limit);
  std::vector<int> missing() const;
  std::string name(int peer) const;

  const int rank_;
  const int world_size_;
  const Options& options_;
  TcpListener tcp_;
  os::UniqueFd unix_;
  std::string unix_name_;
  std::vector<Endpoint> endpoints_;
  std::vector<Channel> channels_;
  std::vector<std::unique_ptr<Dial>> dials_;
  std::vector<std::unique_ptr<Guest>> guests_;
};

Status Bootstrap::listen() {
  REGATTA_TRY(tcp, listen_tcp(options_.listen_address));
  tcp_ = std::move(tcp);
  unix_name_ = random_unix_name();
  auto local = listen_unix(unix_name_);
  if (local)
    unix_ = std::move(*local);
  else
    log_warning("coll: no shared memory, TCP is used instead: " + local.error().message);
  return {};
}

std::string Bootstrap::endpoint() const {
  return format_endpoint({.address = options_.listen_address,
                          .port = tcp_.port,
                          .unix_name = unix_ ? unix_name_ : "",
                          .server = options_.server});
}

Status Bootstrap::read_endpoints(const std::vector<std::string>& texts) {
  if (texts.size() != static_cast<std::size_t>(world_size_))
    return Error{Code::kInvalidInput, "the exchange gave " + std::to_string(texts.size()) +
                                          " endpoints for " + std::to_string(world_size_) +
                                          " ranks: give one for each rank, in rank order"};
  for (const std::string& text : texts) {
    REGATTA_TRY(endpoint, parse_endpoint(text));
    endpoints_.push_back(std::move(endpoint));
  }
  channels_.resize(texts.size());
  for (int peer = 0; peer < rank_; ++peer) {
    const Endpoint& theirs = endpoints_[static_cast<std::size_t>(peer)];
    plan_dials(peer, unix_ && theirs.server == options_.server && !theirs.unix_name.empty());
  }
  return {};
}

void Bootstrap::plan_dials(int peer, bool is_shared) {
  const int count = is_shared ? 1 : std::max(options_.connections, 1) + 1;
  for (int i = 0; i < count; ++i) {
    auto dial = std::make_unique<Dial>();
    dial->peer = peer;
    dial->connection = static_cast<std::uint32_t>(i);
    dial->is_shared = is_shared;
    dial->out = encode_hello({.rank = static_cast<std::uint32_t>(rank_),
                              .world_size = static_cast<std::uint32_t>(world_size_),
                              .connection = static_cast<std::uint32_t>(i),
                              .connections = static_cast<std::uint32_t>(is_shared ? 0 : count),
                              .token = options_.job_token});
    dials_.push_back(std::move(dial));
  }
  if (!is_shared)
    channels_[static_cast<std::size_t>(peer)].connections.resize(static_cast<std::size_t>(count));
}

void Bootstrap::start_dial(Dial& dial, Seconds now) {
  const Endpoint& to = endpoints_[static_cast<std::size_t>(dial.peer)];
  auto fd = dial.is_shared ? dial_unix(to.unix_name)
                           : dial_tcp(options_.listen_address, to.address, to.port);
  dial.is_connected = false;
  dial.sent = 0;
  dial.in.clear();
  if (fd)
    dial.fd = std::move(*fd);
  else
    retry(dial, now);
}

void Bootstrap::retry(Dial& dial, Seconds now) {
  dial.fd.reset();
  dial.retry_at = now + kRetryTime;
}

bool Bootstrap::send_hello(Dial& dial) {
  iovec part{dial.out.data() + dial.sent, dial.out.size() - dial.sent};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (dial.is_shared && dial.sent == 0) {
    // The memory file travels with the first byte.
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = dial.segment->fd();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  const ssize_t sent = sendmsg(dial.fd.get(), &message, MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  dial.sent += static_cast<std::size_t>(sent);
  return true;
}

Bootstrap::DialEnd Bootstrap::serve_dial(Dial& dial, Seconds now) {
  const auto broken = [&] {
    // An abstract name that refuses is out of reach (another network namespace): it stays so.
    if (dial.is_shared) return DialEnd::kFallBack;
    retry(dial, now);
    return DialEnd::kGoesOn;
  };
  if (!dial.fd) {
    if (now < dial.retry_at) return DialEnd::kGoesOn;
    if (dial.is_shared && !dial.segment) {
      auto segment = ShmSegment::create();
      if (!segment) return DialEnd::kFallBack;
      dial.segment = std::move(*segment);
    }
    start_dial(dial, now);
    return dial.is_shared && !dial.fd ? DialEnd::kFallBack : DialEnd::kGoesOn;
  }
  if (!dial.is_connected) {
    pollfd ready{dial.fd.get(), POLLOUT, 0};
    if (poll(&ready, 1, 0) == 0) return DialEnd::kGoesOn;
    if (connect_error(dial.fd.get()) != 0) return broken();
    dial.is_connected = true;
  }
  if (dial.sent < dial.out.size()) return send_hello(dial) ? DialEnd::kGoesOn : broken();
  std::array<std::byte, kReplyBytes> buffer{};
  const ssize_t got = recv(dial.fd.get(), buffer.data(), kReplyBytes - dial.in.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return DialEnd::kGoesOn;
  if (got <= 0) return broken();
  dial.in.insert(dial.in.end(), buffer.begin(), buffer.begin() + got);
  const auto reply = decode_reply(dial.in);
  if (!reply) return broken();
  if (!reply->has_value()) return DialEnd::kGoesOn;
  // Another rank, or a stranger, may have got the port of a rank that ended.
  if ((*reply)->rank != static_cast<std::uint32_t>(dial.peer)) return broken();
  return (*reply)->welcome == Welcome::kNoSharedMemory ? DialEnd::kFallBack : DialEnd::kDone;
}

void Bootstrap::serve_dials(Seconds now) {
  for (std::size_t i = 0; i < dials_.size();) {
    Dial& dial = *dials_[i];
    const DialEnd end = serve_dial(dial, now);
    if (end == DialEnd::kGoesOn) {
      ++i;
      continue;
    }
    Channel& channel = channels_[static_cast<std::size_t>(dial.peer)];
    const int peer = dial.peer;
    if (end == DialEnd::kFallBack) {
      log_warning("coll: no shared memory with " + name(peer) + ", TCP is used instead");
    } else if (dial.is_shared) {
      channel.segment = std::move(*dial.segment);
      channel.is_creator = true;
      channel.bell = std::move(dial.fd);
    } else {
      tune_tcp(dial.fd.get(), options_.peer_timeout.value);
      channel.connections[dial.connection] = std::move(dial.fd);
    }
    dials_.erase(dials_.begin() + static_cast<std::ptrdiff_t>(i));
    if (end == DialEnd::kFallBack) plan_dials(peer, false);
  }
}

void Bootstrap::accept_all(int listener, bool is_shared, Seconds now) {
  if (listener < 0) return;
  for (os::UniqueFd fd = accept_next(listener); fd; fd = accept_next(listener)) {
    auto guest = std::make_unique<Guest>();
    guest->fd = std::move(fd);
    guest->is_shared = is_shared;
    guest->deadline = now + kHelloTime;
    guests_.push_back(std::move(guest));
  }
}

ssize_t Bootstrap::receive(Guest& guest) {
  std::array<std::byte, kReadBytes> buffer{};
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t got = recvmsg(guest.fd.get(), &message, MSG_CMSG_CLOEXEC);
  for (cmsghdr* header = got < 0 ? nullptr : CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    guest.memory.reset(fd);
  }
  if (got > 0) guest.in.insert(guest.in.end(), buffer.begin(), buffer.begin() + got);
  return got;
}

// True when the guest is done with: admitted or refused.
bool Bootstrap::serve_guest(Guest& guest) {
  const ssize_t got = receive(guest);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    refuse(guest, "it closed the connection before it showed a job token");
    return true;
  }
  const auto hello = decode_hello(guest.in);
  if (!hello) {
    refuse(guest, hello.error().message);
    return true;
  }
  if (!hello->has_value()) return false;
  if (const std::string why = refusal(guest, **hello); !why.empty())
    refuse(guest, why);
  else
    admit(guest, **hello);
  return true;
}

std::string Bootstrap::refusal(const Guest& guest, const Hello& hello) const {
  if (hello.token != options_.job_token) return "its job token is wrong";
  if (hello.world_size != static_cast<std::uint32_t>(world_size_))
    return "it counts " + std::to_string(hello.world_size) + " ranks, not " +
           std::to_string(world_size_);
  if (hello.rank <= static_cast<std::uint32_t>(rank_) || hello.rank >= hello.world_size)
    return "rank " + std::to_string(hello.rank) + " has no business here";
  constexpr std::uint32_t kConnectionsMax = 1024;
  if (guest.is_shared != (hello.connections == 0) || hello.connections > kConnectionsMax)
    return "it came by the wrong door";
  const Channel& channel = channels_[hello.rank];
  if (guest.is_shared) return channel.segment ? "its place is taken" : "";
  if (hello.connections < 2 || hello.connection >= hello.connections)
    return "its connection count is wrong";
  if (channel.connections.empty()) return "";
  if (channel.connections.size() != hello.connections) return "its connection count changed";
  return channel.connections[hello.connection] ? "its place is taken" : "";
}

void Bootstrap::admit(Guest& guest, const Hello& hello) {
  Channel& channel = channels_[hello.rank];
  Reply reply{.welcome = Welcome::kAccepted, .rank = static_cast<std::uint32_t>(rank_)};
  std::optional<ShmSegment> segment;
  if (guest.is_shared) {
    auto opened = ShmSegment::open(std::move(guest.memory));
    if (opened)
      segment = std::move(*opened);
    else
      reply.welcome = Welcome::kNoSharedMemory;
  }
  const std::vector<std::byte> bytes = encode_reply(reply);
  const ssize_t sent = send(guest.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  // A caller that is gone tries again.
  if (sent != static_cast<ssize_t>(bytes.size())) return;
  if (segment) {
    channel.segment = std::move(segment);
    channel.bell = std::move(guest.fd);
  } else if (!guest.is_shared) {
    tune_tcp(guest.fd.get(), options_.peer_timeout.value);
    channel.connections.resize(hello.connections);
    channel.connections[hello.connection] = std::move(guest.fd);
  }
}

void Bootstrap::refuse(const Guest& guest, const std::string& why) const {
  log_warning("coll: " + name(rank_) + " refused a connection from " +
              describe_peer(guest.fd.get()) + ": " + why);
}

void Bootstrap::serve_guests(Seconds now) {
  std::erase_if(guests_, [&](const auto& guest) {
    if (serve_guest(*guest)) return true;
    if (now < guest->deadline) return false;
    refuse(*guest, "it did not show a job token in time");
    return true;
  });
}

void Bootstrap::wait(Seconds limit) {
  std::vector<pollfd> fds{{tcp_.fd.get(), POLLIN, 0}};
  if (unix_) fds.push_back({unix_.get(), POLLIN, 0});
  for (const auto& guest : guests_)
    fds.push_back({guest->fd.get(), POLLIN, 0});
  for (const auto& dial : dials_) {
    const bool writes = !dial->is_connected || dial->sent < dial->out.size();
    if (dial->fd) fds.push_back({dial->fd.get(), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
  }
  const Seconds rest = std::clamp(limit, Seconds{0.0}, kRetryTime);
  poll(fds.data(), fds.size(), static_cast<int>(rest.value * 1000) + 1);
}

std::vector<int> Bootstrap::missing() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < world_size_; ++peer) {
    const Channel& channel = channels_[static_cast<std::size_t>(peer)];
    if (peer == rank_ || channel.segment) continue;
    const bool is_whole = !channel.connections.empty() &&
                          std::all_of(channel.connections.begin(), channel.connections.end(),
                                      [](const auto& fd) { return static_cast<bool>(fd); });
    if (!is_whole) ranks.push_back(peer);
  }
  return ranks;
}

Result<Meeting> Bootstrap::meet_all() {
  const Seconds limit = options_.peer_timeout + kPatience;
  const Seconds deadline = os::monotonic_now() + limit;
  for (std::vector<int> absent = missing(); !absent.empty(); absent = missing()) {
    const Seconds now = os::monotonic_now();
    if (now >= deadline) {
      std::vector<std::string> names;
      for (const int peer : absent)
        names.push_back(name(peer));
      return Error{Code::kTimeout, join(names, ", ") + ": no connection within " +
                                       format_seconds(limit) +
                                       "; see whether it runs and can be reached"};
    }
    accept_all(tcp_.fd.get(), false, now);
    accept_all(unix_.get(), true, now);
    serve_guests(now);
    serve_dials(now);
    if (!missing().empty()) wait(deadline - now);
  }
  Meeting meeting{.channels = std::move(channels_), .names = {}};
  for (int peer = 0; peer < world_size_; ++peer)
    meeting.names.push_back(name(peer));
  return meeting;
}

std::string Bootstrap::name(int peer) const {
  const auto index = static_cast<std::size_t>(peer);
  std::string text = index < options_.rank_names.size() ? options_.rank_names[index]
                                                        : "rank " + std::to_string(peer);
  if (index < endpoints_.size() && !endpoints_[index].server.empty())
    text += " at " + endpoints_[index].server;
  return text;
}

}  // namespace

Result<Meeting> meet(int rank, int world_size, const Exchange& exchange, const Options& options) {
  if (options.job_token.size() > kTokenBytesMax)
    return Error{Code::kInvalidInput, "the job token is longer than 1024 bytes"};
  Bootstrap bootstrap(rank, world_size, options);
  REGATTA_TRY_DO(bootstrap.listen());
  REGATTA_TRY(texts, exchange(bootstrap.endpoint()));
  REGATTA_TRY_DO(bootstrap.read_endpoints(texts));
  return bootstrap.meet_all();
}

}  // namespace regatta::coll
