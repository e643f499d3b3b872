#include "regatta/network/probe/internal/batch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>

#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/addresses.h"

namespace regatta::probe {
namespace {

// As many as usually arrive or leave at once: the caches lose the buffers while a prober sleeps, so
// more room costs more time.
constexpr std::size_t kBatch = 16;
constexpr int kBufferBytes = 1 << 20;
constexpr std::size_t kHeaderBytes = sizeof(iphdr) + sizeof(udphdr);
constexpr std::uint8_t kTimeToLive = 64;

constexpr std::uint16_t kDoNotFragment = 0x4000;

std::array<std::byte, kPayloadBytesMax>& zeros() {
  static std::array<std::byte, kPayloadBytesMax> all{};
  return all;
}

// The space that one message of a batch needs.
struct Slot {
  Payload payload;
  std::array<std::byte, kHeaderBytes + sizeof(Payload)> frame;  // of what leaves raw
  sockaddr_in remote{};
  std::array<iovec, 2> data{};  // the payload or frame, and the zeros behind it
  alignas(cmsghdr) std::array<char, 128> control{};
};

struct Batch {
  std::array<Slot, kBatch> slots;
  std::array<mmsghdr, kBatch> messages{};

  void prepare(std::size_t i, std::size_t control_size) {
    Slot& slot = slots[i];
    slot.data[0] = {&slot.payload, sizeof slot.payload};
    msghdr& header = messages[i].msg_hdr;
    header = {};
    header.msg_name = &slot.remote;
    header.msg_namelen = sizeof slot.remote;
    header.msg_iov = slot.data.data();
    header.msg_iovlen = 1;
    header.msg_control = slot.control.data();
    header.msg_controllen = control_size;
  }
};

Batch& batch() {
  thread_local Batch own;
  return own;
}

template <typename T>
void set_control(cmsghdr* control, int type, const T& value) {
  control->cmsg_level = IPPROTO_IP;
  control->cmsg_type = type;
  control->cmsg_len = CMSG_LEN(sizeof value);
  std::memcpy(CMSG_DATA(control), &value, sizeof value);
}

// Address that the packet leaves from, and type of service where it is not the socket's.
void set_controls(msghdr& header, const Packet& packet) {
  constexpr std::size_t kAddressSpace = CMSG_SPACE(sizeof(in_pktinfo));
  const bool has_service = packet.type_of_service != topo::kProbeTos;
  header.msg_controllen = kAddressSpace + (has_service ? CMSG_SPACE(sizeof(int)) : 0);
  in_pktinfo info{};
  info.ipi_spec_dst.s_addr = ::htonl(packet.local);
  cmsghdr* const first = CMSG_FIRSTHDR(&header);
  set_control(first, IP_PKTINFO, info);
  if (has_service) set_control(CMSG_NXTHDR(&header, first), IP_TOS, int{packet.type_of_service});
}

void add_zeros(Slot& slot, msghdr& header, const Packet& packet) {
  if (packet.size <= sizeof packet.payload) return;
  const std::size_t bytes = std::min(packet.size, zeros().size()) - sizeof packet.payload;
  slot.data[1] = {zeros().data(), bytes};
  header.msg_iovlen = 2;
}

Packet read_slot(const Slot& slot, std::size_t size, msghdr& header) {
  Packet packet{.remote = ::ntohl(slot.remote.sin_addr.s_addr),
                .remote_port = ::ntohs(slot.remote.sin_port),
                .payload = slot.payload,
                .size = size};
  for (cmsghdr* at = CMSG_FIRSTHDR(&header); at != nullptr; at = CMSG_NXTHDR(&header, at)) {
    if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(at), sizeof info);
      packet.local = ::ntohl(info.ipi_spec_dst.s_addr);
    } else if (at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_TIMESTAMPNS) {
      timespec time;
      std::memcpy(&time, CMSG_DATA(at), sizeof time);
      packet.arrived_ns = time.tv_sec * 1'000'000'000LL + time.tv_nsec;
    }
  }
  return packet;
}

}  // namespace

Result<os::UniqueFd> open_socket(std::uint16_t port, std::uint32_t address) {
  os::UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return os::errno_error("prober's socket");
  const int on = 1;
  const int bytes = kBufferBytes;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  ::setsockopt(fd.get(), IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  // Where a healer leads other traffic around a fault, probes still see whether it is well.
  const int tos = topo::kProbeTos;
  ::setsockopt(fd.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos);
  // Without the sizes that routers have asked for: a path that is too narrow is to be seen.
  const int whole = IP_PMTUDISC_PROBE;
  ::setsockopt(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole);
  // Beyond the system's limit where the rights allow it: a busy server takes its probes later.
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_port = ::htons(port);
  own.sin_addr.s_addr = ::htonl(address);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0) return fd;
  if (errno == EADDRINUSE)
    return Error{Code::kConflict, "UDP port " + std::to_string(port) +
                                      ": is taken; end the other prober on this server first"};
  return os::errno_error("UDP port " + std::to_string(port));
}

namespace {

// Checksum of RFC 1071 over whole words, without the final inversion.
template <typename T>
std::uint32_t word_sum(const T& value, std::uint32_t sum) {
  std::array<std::uint16_t, sizeof(T) / 2> words;
  std::memcpy(words.data(), &value, sizeof value);
  for (const std::uint16_t word : words)
    sum += word;
  return sum;
}

// The kernel fills in what is left of the header of IP. Zeros behind it add nothing to a checksum.
void write_frame(const Packet& packet, Slot& slot) {
  iphdr ip{};
  ip.version = 4;
  ip.ihl = sizeof ip / 4;
  ip.tos = packet.type_of_service;
  ip.frag_off = ::htons(kDoNotFragment);
  ip.ttl = kTimeToLive;
  ip.protocol = IPPROTO_UDP;
  ip.saddr = ::htonl(packet.local);
  ip.daddr = ::htonl(packet.remote);
  udphdr udp{};
  udp.source = ::htons(packet.local_port);
  udp.dest = ::htons(packet.remote_port);
  udp.len = ::htons(
      static_cast<std::uint16_t>(sizeof udp + std::max(packet.size, sizeof packet.payload)));
  std::uint32_t sum = word_sum(ip.saddr, word_sum(ip.daddr, ::htons(IPPROTO_UDP) + udp.len));
  sum = word_sum(packet.payload, word_sum(udp, sum));
  while (sum > 0xffff)
    sum = (sum & 0xffffU) + (sum >> 16U);
  udp.check = static_cast<std::uint16_t>(~sum);
  if (udp.check == 0) udp.check = 0xffff;  // 0 would say that there is none
  std::memcpy(slot.frame.data(), &ip, sizeof ip);
  std::memcpy(slot.frame.data() + sizeof ip, &udp, sizeof udp);
  std::memcpy(slot.frame.data() + kHeaderBytes, &packet.payload, sizeof packet.payload);
}

std::size_t send_batches(int socket, bool raw, std::span<const Packet> packets) {
  Batch& space = batch();
  std::size_t done = 0;
  while (done < packets.size()) {
    const std::size_t count = std::min(kBatch, packets.size() - done);
    for (std::size_t i = 0; i < count; ++i) {
      const Packet& packet = packets[done + i];
      space.prepare(i, 0);
      Slot& slot = space.slots[i];
      slot.remote = {};
      slot.remote.sin_family = AF_INET;
      slot.remote.sin_addr.s_addr = ::htonl(packet.remote);
      if (raw) {
        write_frame(packet, slot);
        slot.data[0] = {slot.frame.data(), slot.frame.size()};
      } else {
        slot.payload = packet.payload;
        slot.remote.sin_port = ::htons(packet.remote_port);
      }
      // A route may depend on the address that a packet leaves from: also where the frame has it.
      set_controls(space.messages[i].msg_hdr, packet);
      add_zeros(slot, space.messages[i].msg_hdr, packet);
    }
    const int sent =
        ::sendmmsg(socket, space.messages.data(), static_cast<unsigned>(count), MSG_DONTWAIT);
    // One that has no path does not hold up the others.
    done += sent > 0 ? static_cast<std::size_t>(sent) : 1;
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return done - 1;
  }
  return done;
}

}  // namespace

Result<Sender> Sender::open(const std::set<std::uint16_t>& ports, bool may_be_raw) {
  Sender sender;
  if (may_be_raw) {
    os::UniqueFd raw(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW));
    const int tos = topo::kProbeTos;  // for the choice of the route
    // A router may have asked any socket of this server for smaller packets; the kernel remembers
    // that for ten minutes, and would drop large probes.
    const int whole = IP_PMTUDISC_PROBE;
    if (raw && ::setsockopt(raw.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos) == 0 &&
        ::setsockopt(raw.get(), IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole) == 0)
      sender.raw_ = std::move(raw);
  }
  if (sender.is_raw()) return sender;
  for (const std::uint16_t port : ports) {
    REGATTA_TRY(socket, open_socket(port));
    sender.sockets_[port] = std::move(socket);
  }
  return sender;
}

std::size_t Sender::send(std::span<const Packet> packets) {
  if (is_raw()) return send_batches(raw_.get(), true, packets);
  std::size_t done = 0;
  while (!packets.empty()) {
    const auto other = std::ranges::find_if(
        packets, [&](const Packet& one) { return one.local_port != packets.front().local_port; });
    const auto together = packets.first(static_cast<std::size_t>(other - packets.begin()));
    const auto socket = sockets_.find(together.front().local_port);
    if (socket != sockets_.end()) done += send_batches(socket->second.get(), false, together);
    packets = packets.subspan(together.size());
  }
  return done;
}

void receive_all(int socket, std::vector<Packet>& packets) {
  Batch& space = batch();
  for (;;) {
    for (std::size_t i = 0; i < kBatch; ++i)
      space.prepare(i, space.slots[i].control.size());
    const int count =
        ::recvmmsg(socket, space.messages.data(), kBatch, MSG_DONTWAIT | MSG_TRUNC, nullptr);
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const std::size_t size = space.messages[at].msg_len;
      if (size < sizeof(Payload)) continue;
      packets.push_back(read_slot(space.slots[at], size, space.messages[at].msg_hdr));
    }
    if (count < static_cast<int>(kBatch)) return;
  }
}

std::optional<int> mtu_of(const std::string& interface) {
  const os::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
  if (::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return std::nullopt;
  return request.ifr_mtu;
}

std::uint32_t dropped(int socket) {
  std::array<std::uint32_t, SK_MEMINFO_VARS> values{};
  socklen_t size = sizeof values;
  if (::getsockopt(socket, SOL_SOCKET, SO_MEMINFO, values.data(), &size) != 0) return 0;
  return values[SK_MEMINFO_DROPS];
}

}  // namespace regatta::probe
