#include "regatta/network/probe/internal/tracer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <thread>

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/addresses.h"

namespace regatta::probe {
namespace {

constexpr Seconds kLateMost{0.05};  // that a step may begin
constexpr std::uint32_t kMagic = 0x52505234;

// Comes back with the router's answer where that holds more than the ports.
struct Mark {
  std::uint32_t magic = kMagic;
  std::uint32_t step = 0;
};

sockaddr_in place(std::uint32_t address, std::uint16_t port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = ::htonl(address);
  place.sin_port = ::htons(port);
  return place;
}

class PathTrace {
 public:
  explicit PathTrace(const Traced& path) : path_(path), hops_(static_cast<std::size_t>(path.hops)) {
    os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const auto set = [&](int level, int option, int value) {
      return ::setsockopt(fd.get(), level, option, &value, sizeof value) == 0;
    };
    const sockaddr_in from = place(path.flow.from, path.flow.from_port);
    const sockaddr_in to = place(path.flow.to, path.flow.to_port);
    // A router's complaint of a large probe of the same ports comes to this socket: it must not
    // change the size of the packets that users' connections send.
    // Where probes have a socket of their own on this port, answers come to the connected one.
    const bool is_open =
        fd && set(SOL_SOCKET, SO_REUSEADDR, 1) && set(IPPROTO_IP, IP_RECVERR, 1) &&
        set(IPPROTO_IP, IP_TOS, topo::kProbeTos) &&
        set(IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_INTERFACE) &&
        ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) == 0 &&
        ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    if (is_open) fd_ = std::move(fd);
  }

  bool is_open() const { return static_cast<bool>(fd_); }
  std::uint32_t steps() const { return static_cast<std::uint32_t>(path_.hops * path_.tries); }

  void send(std::uint32_t step) {
    if (!fd_ || step >= steps()) return;
    TraceHop& hop = hops_[step % hops_.size()];
    const int limit = static_cast<int>(step % hops_.size()) + 1;
    ::setsockopt(fd_.get(), IPPROTO_IP, IP_TTL, &limit, sizeof limit);
    const Mark mark{.step = step};
    ++hop.sent;
    // An answer that is waiting fails the next call, and only that.
    for (int again = 0; again < 3; ++again)
      if (::send(fd_.get(), &mark, sizeof mark, 0) == sizeof mark) return;
    --hop.sent;
  }

  void read_answers() {
    while (fd_ && read_answer()) {
    }
  }

  std::optional<std::vector<TraceHop>> result() const {
    if (!fd_) return std::nullopt;
    return hops_;
  }

 private:
  bool read_answer() {
    Mark mark{.magic = 0};
    iovec part{&mark, sizeof mark};
    alignas(cmsghdr) std::array<char, 256> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t count = ::recvmsg(fd_.get(), &message, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (count < 0) return errno == EINTR;
    // If routers return no more than the ports, their answers cannot be assigned.
    if (count != sizeof mark || mark.magic != kMagic || mark.step >= steps()) return true;
    for (cmsghdr* at = CMSG_FIRSTHDR(&message); at != nullptr; at = CMSG_NXTHDR(&message, at)) {
      if (at->cmsg_level != IPPROTO_IP || at->cmsg_type != IP_RECVERR) continue;
      const auto* error = reinterpret_cast<const sock_extended_err*>(CMSG_DATA(at));
      if (error->ee_origin != SO_EE_ORIGIN_ICMP || error->ee_type != ICMP_TIME_EXCEEDED) continue;
      sockaddr_in router;
      std::memcpy(&router, SO_EE_OFFENDER(error), sizeof router);
      TraceHop& hop = hops_[mark.step % hops_.size()];
      if (hop.answered < hop.sent) ++hop.answered;
      hop.router = ::ntohl(router.sin_addr.s_addr);
    }
    return true;
  }

  Traced path_;
  os::UniqueFd fd_;
  std::vector<TraceHop> hops_;
};

void sleep_until(Seconds time) {
  const Seconds left = time - os::monotonic_now();
  if (left.value > 0) std::this_thread::sleep_for(std::chrono::duration<double>(left.value));
}

}  // namespace

std::vector<std::optional<std::vector<TraceHop>>> trace(std::span<const Traced> paths,
                                                        const std::atomic<bool>& stop) {
  // A probe and the answer to one that comes the other direction may have the very same 5-tuple: of
  // two sockets with it only one would hear the routers.
  std::vector<PathTrace> all;
  std::map<fabric::FiveTuple, std::size_t> place;
  for (const Traced& path : paths)
    if (place.try_emplace(path.flow, all.size()).second) all.emplace_back(path);
  std::uint32_t steps = 0;
  for (const PathTrace& one : all)
    steps = std::max(steps, one.is_open() ? one.steps() : 0);
  Seconds due = os::monotonic_now();
  for (std::uint32_t step = 0; step < steps; ++step) {
    for (PathTrace& one : all)
      one.send(step);
    due = due + kTraceStep;
    sleep_until(due);
    if (stop || os::monotonic_now() - due > kLateMost) return {};
    for (PathTrace& one : all)
      one.read_answers();
  }
  if (steps > 0) sleep_until(due + kTraceGrace);
  for (PathTrace& one : all)
    one.read_answers();
  std::vector<std::optional<std::vector<TraceHop>>> results;
  for (const Traced& path : paths)
    results.push_back(all[place.at(path.flow)].result());
  return results;
}

}  // namespace regatta::probe
