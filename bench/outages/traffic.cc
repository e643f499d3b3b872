#include "traffic.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>

#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/addresses.h"

namespace regatta::outages {
namespace {

constexpr std::uint32_t kLoopback = 0x7f000001;

Result<os::UniqueFd> open_one(std::uint32_t address, std::uint16_t port, bool receives) {
  os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = ::htons(port);
  name.sin_addr.s_addr = ::htonl(address);
  const int on = 1;
  const int room = 4 << 20;
  // Flows of one server may have the same source port.
  if (!receives) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (receives) {
    ::setsockopt(fd.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
  }
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
    return os::errno_error("socket of a flow");
  return fd;
}

Status connect_to(const os::UniqueFd& fd, std::uint32_t address, std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = ::htons(port);
  name.sin_addr.s_addr = ::htonl(address);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
    return os::errno_error("socket of a flow");
  return {};
}

Result<os::NetworkNamespaceScope> enter(const LabNet& net, int server) {
  REGATTA_TRY(space,
              lab::open_network(net.lab, net.graph.nodes[static_cast<std::size_t>(server)].name));
  return os::NetworkNamespaceScope::enter(space);
}

std::int64_t kernel_time(const msghdr& message) {
  for (auto* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(const_cast<msghdr*>(&message), head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec time{};
    std::memcpy(&time, CMSG_DATA(head), sizeof time);
    return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
  }
  return now_ns();
}

}  // namespace

Status open_sockets(const LabNet& net, Flow& flow) {
  {
    REGATTA_TRY(scope, enter(net, flow.to));
    REGATTA_TRY(receiver, open_one(flow.tuple.to, flow.tuple.to_port, true));
    flow.receiver = std::move(receiver);
  }
  REGATTA_TRY(scope, enter(net, flow.from));
  REGATTA_TRY(sender, open_one(flow.tuple.from, flow.tuple.from_port, false));
  flow.sender = std::move(sender);
  return connect_to(flow.sender, flow.tuple.to, flow.tuple.to_port);
}

Result<Flow> open_control(const LabNet& net, std::uint16_t port) {
  Flow flow;
  REGATTA_TRY(scope, enter(net, 0));
  REGATTA_TRY(receiver, open_one(kLoopback, port, true));
  REGATTA_TRY(sender, open_one(kLoopback, static_cast<std::uint16_t>(port + 1), false));
  flow.receiver = std::move(receiver);
  flow.sender = std::move(sender);
  REGATTA_TRY_DO(connect_to(flow.sender, kLoopback, port));
  return flow;
}

std::int64_t now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

void take_priority() {
  const sched_param priority{10};
  static_cast<void>(::sched_setscheduler(0, SCHED_RR, &priority) == 0);
}

void sleep_until(std::int64_t at) {
  const timespec time{at / 1'000'000'000, at % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

Traffic::Traffic(std::vector<Flow> flows, Flow control) : flows_(std::move(flows)) {
  flows_.push_back(std::move(control));
  arrivals_.resize(flows_.size());
  receiver_ = std::thread([this] { receive_all(); });
  sender_ = std::thread([this] { send_all(); });
}

Traffic::~Traffic() {
  stop_ = true;
  sender_.join();
  receiver_.join();
}

void Traffic::send_all() {
  take_priority();
  std::array<std::uint32_t, 64> packet{};
  for (std::int64_t next = now_ns(); !stop_; next += kPeriodNs) {
    next = std::max(next, now_ns() - kPeriodNs);  // what was slept through is not sent after
    sleep_until(next);
    ++packet[0];
    for (const Flow& flow : flows_)
      static_cast<void>(::send(flow.sender.get(), packet.data(), sizeof packet, MSG_DONTWAIT) > 0);
  }
}

void Traffic::receive_all() {
  std::vector<pollfd> waits;
  for (const Flow& flow : flows_)
    waits.push_back({flow.receiver.get(), POLLIN, 0});
  std::array<std::uint32_t, 64> packet{};
  alignas(cmsghdr) std::array<char, 256> control{};
  while (!stop_) {
    ::poll(waits.data(), waits.size(), 20);
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      if (waits[i].revents == 0) continue;
      for (;;) {
        iovec block{packet.data(), sizeof packet};
        msghdr message{};
        message.msg_iov = &block;
        message.msg_iovlen = 1;
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        if (::recvmsg(flows_[i].receiver.get(), &message, MSG_DONTWAIT) <= 0) break;
        const std::int64_t at = kernel_time(message);
        const std::scoped_lock lock(mutex_);
        if (at >= begin_) arrivals_[i].push_back({packet[0], at});
      }
    }
    sleep_until(now_ns() + 5'000'000);  // several packets at a time
  }
}

void Traffic::begin() {
  const std::scoped_lock lock(mutex_);
  begin_ = now_ns();
  for (auto& arrivals : arrivals_)
    arrivals.clear();
}

std::vector<Silence> Traffic::measure(std::int64_t end) {
  sleep_until(end + 30'000'000);  // until the receiver has looked
  const std::scoped_lock lock(mutex_);
  std::vector<Silence> all;
  for (const auto& arrivals : arrivals_) {
    Silence one;
    std::int64_t last = begin_;
    std::uint32_t number = 0;
    for (const Arrival& arrival : arrivals) {
      if (arrival.at > end) break;
      one.longest_ns = std::max(one.longest_ns, arrival.at - last - kPeriodNs);
      if (number != 0 && arrival.number > number + 1) {
        one.with_loss_ns = std::max(one.with_loss_ns, arrival.at - last - kPeriodNs);
        one.lost += arrival.number - number - 1;
        one.lost_in_a_row = std::max(one.lost_in_a_row, arrival.number - number - 1);
      }
      last = arrival.at;
      number = std::max(number, arrival.number);
    }
    one.longest_ns = std::max(one.longest_ns, end - last - kPeriodNs);
    // Nothing came to the end: lost, unless it is only the last packet or two.
    if (end - last > 5 * kPeriodNs)
      one.with_loss_ns = std::max(one.with_loss_ns, end - last - kPeriodNs);
    all.push_back(one);
  }
  return all;
}

}  // namespace regatta::outages
