#include "regatta/network/link_rates/internal/train_socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "regatta/base/os/clock.h"
#include "regatta/model/topo/addresses.h"

namespace regatta::link_rates {
namespace {

constexpr std::size_t kBatch = 32;     // packets by one call
constexpr int kBatchesMost = 16;       // received at once
constexpr int kBufferBytes = 4 << 20;  // the kernel may allow less
constexpr int kFullTimeToLive = 64;
constexpr std::size_t kControlBytes = 64;

sockaddr_in socket_address(std::uint32_t address, std::uint16_t port) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(address);
  result.sin_port = htons(port);
  return result;
}

Result<os::UniqueFd> bound_socket(std::uint32_t address, std::uint16_t port, int flags) {
  const std::string name = fmt::format("{}:{}", topo::address_text(address), port);
  os::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | flags, 0));
  if (!socket) return os::errno_error(name);
  const sockaddr_in at = socket_address(address, port);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    if (errno == EADDRNOTAVAIL)
      return Error{Code::kInvalidInput,
                   topo::address_text(address) +
                       " is no address of this machine; give --server the name of this server, or "
                       "give the NIC its address"};
    return os::errno_error(name);
  }
  return socket;
}

// A batch of packets to send: each with its header, its length and its time to live.
class PacketBatch {
 public:
  PacketBatch(sockaddr_in to, const TrainShape& shape) : to_(to), shape_(shape) {
    filling_.resize(static_cast<std::size_t>(kTrainPacketBytesMost));
  }

  void add(std::uint64_t train, int index) {
    const std::size_t at = count_++;
    headers_[at] = encode({.train = train, .index = static_cast<std::uint32_t>(index)});
    const auto bytes = static_cast<std::size_t>(bytes_of(shape_, index));
    parts_[at] = {iovec{headers_[at].data(), kTrainHeaderBytes},
                  iovec{filling_.data(), bytes - kTrainHeaderBytes}};
    msghdr& message = messages_[at].msg_hdr;
    message = {};
    message.msg_name = &to_;
    message.msg_namelen = sizeof to_;
    message.msg_iov = parts_[at].data();
    message.msg_iovlen = parts_[at].size();
    message.msg_control = controls_[at].data();
    message.msg_controllen = CMSG_SPACE(sizeof(int));
    cmsghdr* const control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = IPPROTO_IP;
    control->cmsg_type = IP_TTL;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    const bool ends_early = shape_.time_to_live > 0 && !is_marker(shape_, index);
    const int time_to_live = ends_early ? shape_.time_to_live : kFullTimeToLive;
    std::memcpy(CMSG_DATA(control), &time_to_live, sizeof time_to_live);
  }
  bool is_full() const { return count_ == kBatch; }

  Status send(int socket) {
    for (std::size_t done = 0; done < count_;) {
      const int count =
          ::sendmmsg(socket, messages_.data() + done, static_cast<unsigned>(count_ - done), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return os::errno_error("cannot send a packet train");
      done += static_cast<std::size_t>(count);
    }
    count_ = 0;
    return {};
  }

 private:
  sockaddr_in to_;
  const TrainShape shape_;
  std::vector<std::byte> filling_;
  std::size_t count_ = 0;
  std::array<std::array<std::byte, kTrainHeaderBytes>, kBatch> headers_{};
  std::array<std::array<iovec, 2>, kBatch> parts_{};
  struct alignas(cmsghdr) Control : std::array<char, kControlBytes> {};
  std::array<Control, kBatch> controls_{};
  std::array<mmsghdr, kBatch> messages_{};
};

std::optional<std::int64_t> time_of(msghdr& message) {
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_TIMESTAMPNS) continue;
    timespec time{};
    std::memcpy(&time, CMSG_DATA(one), sizeof time);
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  }
  return std::nullopt;
}

}  // namespace

Result<BytesPerSecond> send_train(std::uint64_t train, const fabric::FiveTuple& flow,
                                  const TrainShape& shape) {
  REGATTA_TRY(socket, bound_socket(flow.from, flow.from_port, 0));
  // As probes: a healer leaves their routes as designed, so that the path is known.
  const int tos = topo::kProbeTos;
  ::setsockopt(socket.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kBufferBytes, sizeof kBufferBytes);
  PacketBatch batch(socket_address(flow.to, flow.to_port), shape);
  const Seconds begun = os::thread_cpu_time();
  for (int i = 0; i < shape.packets; ++i) {
    batch.add(train, i);
    if (batch.is_full() || i + 1 == shape.packets) REGATTA_TRY_DO(batch.send(socket.get()));
  }
  const Seconds used = std::max(Seconds{1e-6}, os::thread_cpu_time() - begun);
  return frame_bytes(shape) / used;
}

Result<TrainReceiver> TrainReceiver::open(std::uint32_t address, std::uint16_t port) {
  REGATTA_TRY(socket, bound_socket(address, port, SOCK_NONBLOCK));
  const int on = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0)
    return os::errno_error("times of packets");
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof kBufferBytes);
  return TrainReceiver(std::move(socket));
}

std::vector<ReceivedTrainPacket> TrainReceiver::receive() {
  struct alignas(cmsghdr) Control : std::array<char, kControlBytes> {};
  std::array<std::array<std::byte, kTrainHeaderBytes>, kBatch> blocks{};
  std::array<iovec, kBatch> parts{};
  std::array<sockaddr_in, kBatch> senders{};
  std::array<Control, kBatch> controls{};
  std::array<mmsghdr, kBatch> messages{};
  std::vector<ReceivedTrainPacket> packets;
  for (int round = 0; round < kBatchesMost; ++round) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      parts[i] = {blocks[i].data(), blocks[i].size()};
      msghdr& message = messages[i].msg_hdr;
      message = {};
      message.msg_name = &senders[i];
      message.msg_namelen = sizeof senders[i];
      message.msg_iov = &parts[i];
      message.msg_iovlen = 1;
      message.msg_control = controls[i].data();
      message.msg_controllen = controls[i].size();
    }
    const int count = ::recvmmsg(socket_.get(), messages.data(), kBatch, MSG_DONTWAIT, nullptr);
    if (count <= 0) break;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      const auto header = decode_train_header(std::span(blocks[i]).first(
          std::min<std::size_t>(messages[i].msg_len, kTrainHeaderBytes)));
      const auto at = time_of(messages[i].msg_hdr);
      if (header && at)
        packets.push_back(
            {.header = *header, .from = ntohl(senders[i].sin_addr.s_addr), .at_ns = *at});
    }
    if (static_cast<std::size_t>(count) < kBatch) break;
  }
  return packets;
}

}  // namespace regatta::link_rates
