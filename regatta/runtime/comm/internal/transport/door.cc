#include "regatta/runtime/comm/internal/transport/door.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/log.h"

namespace regatta::comm {
namespace {

constexpr Seconds kHelloTime{5.0};  // a caller shows who it is within
constexpr std::size_t kReadBytes = 512;

}  // namespace

Result<Door> Door::open(std::string host, const std::string& address, int shelf) {
  Door door;
  door.shelf_ = shelf;
  door.host_ = std::move(host);
  REGATTA_TRY(tcp, listen_tcp(address));
  door.tcp_ = std::move(tcp);
  const std::string name = random_unix_name();
  auto local = listen_unix(name);
  if (local) {
    door.unix_ = std::move(*local);
    door.unix_name_ = name;
  } else {
    log_warning("coll: no shared memory, TCP is used instead: " + local.error().message);
  }
  return door;
}

void Door::add_poll_fds(std::vector<pollfd>& fds) const {
  fds.push_back({tcp_.fd.get(), POLLIN, 0});
  if (unix_) fds.push_back({unix_.get(), POLLIN, 0});
  for (const auto& guest : guests_)
    fds.push_back({guest->fd.get(), POLLIN, 0});
}

std::vector<Arrival> Door::serve(Seconds now, const ReadyFds& ready, const Judge& judge) {
  std::vector<Arrival> arrivals;
  if (ready.has(tcp_.fd.get())) take_callers(tcp_.fd.get(), false, now);
  if (ready.has(unix_.get())) take_callers(unix_.get(), true, now);
  std::erase_if(guests_, [&](const auto& guest) {
    // Most callers have said all when they are taken in.
    const bool is_new = guest->in.empty();
    if ((is_new || ready.has(guest->fd.get())) && hear(*guest, judge, arrivals) == Verdict::kGone)
      return true;
    if (now < guest->deadline) return false;
    refuse(*guest, "it did not show a job token in time");
    return true;
  });
  return arrivals;
}

void Door::take_callers(int listener, bool is_shared, Seconds now) {
  if (listener < 0) return;
  for (os::UniqueFd fd = accept_next(listener); fd; fd = accept_next(listener)) {
    auto guest = std::make_unique<Guest>();
    guest->fd = std::move(fd);
    guest->is_shared = is_shared;
    guest->deadline = now + kHelloTime;
    guests_.push_back(std::move(guest));
  }
}

ssize_t Door::receive(Guest& guest) {
  std::array<std::byte, kReadBytes> buffer{};
  const ssize_t got = receive_with_fds(guest.fd.get(), buffer, guest.memory);
  if (got > 0) guest.in.insert(guest.in.end(), buffer.begin(), buffer.begin() + got);
  return got;
}

Door::Verdict Door::hear(Guest& guest, const Judge& judge, std::vector<Arrival>& arrivals) {
  const ssize_t got = receive(guest);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Verdict::kWaits;
  if (got <= 0) {
    // Who says nothing at all wants to know whether somebody listens, as a Knock does.
    if (!guest.in.empty()) refuse(guest, "it closed the connection before it showed a job token");
    return Verdict::kGone;
  }
  auto hello = decode_hello(guest.in);
  if (hello && !hello->has_value()) return Verdict::kWaits;
  std::string why = hello ? judge(**hello) : hello.error().message;
  if (why.empty() && guest.is_shared != ((*hello)->connections == 0))
    why = "it came by the wrong door";
  if (why.empty())
    admit(guest, std::move(**hello), arrivals);
  else
    refuse(guest, why);
  return Verdict::kGone;
}

void Door::admit(Guest& guest, Hello hello, std::vector<Arrival>& arrivals) const {
  Reply reply{.welcome = Welcome::kAccepted, .rank = static_cast<std::uint32_t>(rank_)};
  Arrival arrival{
      .hello = std::move(hello), .fd = std::move(guest.fd), .segment = std::nullopt, .shelf = {}};
  if (guest.is_shared) {
    guest.memory.resize(2);
    auto segment = ShmSegment::open(std::move(guest.memory[0]));
    if (guest.memory[1]) arrival.shelf = open_shelf(std::move(guest.memory[1]));
    if (segment)
      arrival.segment = std::move(*segment);
    else
      reply.welcome = Welcome::kNoSharedMemory;
  }
  const std::vector<std::byte> bytes = encode_reply(reply);
  const std::size_t fds = guest.is_shared && shelf_ >= 0 ? 1 : 0;
  const ssize_t sent = send_with_fds(arrival.fd.get(), bytes, {&shelf_, fds});
  // A caller that is gone tries again; one without shared memory comes back over TCP.
  const bool is_in = sent == static_cast<ssize_t>(bytes.size());
  if (is_in && reply.welcome == Welcome::kAccepted) arrivals.push_back(std::move(arrival));
}

void Door::refuse(const Guest& guest, const std::string& why) const {
  log_warning("coll: " + host_ + " refused a connection from " + describe_peer(guest.fd.get()) +
              ": " + why);
}

}  // namespace regatta::comm
