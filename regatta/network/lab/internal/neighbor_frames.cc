#include "regatta/network/lab/internal/neighbor_frames.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/process.h"

namespace regatta::lab {
namespace {

constexpr std::uint16_t kLldp = 0x88cc;
// The nearest bridge; a source that no vendor has.
constexpr std::string_view kAddresses("\x01\x80\xc2\x00\x00\x0e\x02\x00\x00\x00\x00\x01", 12);
constexpr std::string_view kType("\x88\xcc", 2);
constexpr std::size_t kHead = kAddresses.size() + kType.size();
constexpr std::size_t kShortest = 60;
constexpr char kLocal = 7;  // an identifier that the sender chose

enum Field : unsigned { kEnd = 0, kChassis = 1, kPort = 2, kTimeToLive = 3 };

void add_field(std::string& frame, Field type, std::string_view value) {
  const unsigned head = type << 9U | static_cast<unsigned>(value.size());
  frame += static_cast<char>(head >> 8U);
  frame += static_cast<char>(head & 0xffU);
  frame += value;
}

}  // namespace

std::string neighbor_frame(std::string_view node, std::uint32_t port) {
  std::string frame(kAddresses);
  frame += kType;
  add_field(frame, kChassis, kLocal + std::string(node));
  add_field(frame, kPort, kLocal + std::to_string(port));
  add_field(frame, kTimeToLive, std::string_view("\0\1", 2));
  add_field(frame, kEnd, "");
  if (frame.size() < kShortest) frame.resize(kShortest);
  return frame;
}

std::optional<std::uint32_t> parse_neighbor_frame(std::string_view frame) {
  if (frame.size() < kHead || frame.substr(kAddresses.size(), kType.size()) != kType)
    return std::nullopt;
  frame.remove_prefix(kHead);
  while (frame.size() >= 2) {
    const unsigned head =
        static_cast<unsigned char>(frame[0]) << 8U | static_cast<unsigned char>(frame[1]);
    const std::size_t length = head & 0x1ffU;
    const std::string_view value = frame.substr(2, length);
    if (value.size() < length || head >> 9U == kEnd) return std::nullopt;
    if (head >> 9U == kPort && !value.empty() && value[0] == kLocal)
      return parse_number<std::uint32_t>(value.substr(1));
    frame.remove_prefix(2 + length);
  }
  return std::nullopt;
}

Result<NeighborFrames> NeighborFrames::open() {
  os::UniqueFd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, ::htons(kLldp)));
  if (!socket) return os::errno_error("frames to the neighbors of a lab's ports");
  const int on = 1;
  ::setsockopt(socket.get(), SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
  return NeighborFrames(std::move(socket));
}

void NeighborFrames::send(int interface_index, const std::string& frame) const {
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = ::htons(kLldp);
  to.sll_ifindex = interface_index;
  to.sll_halen = ETH_ALEN;
  std::copy_n(frame.data(), ETH_ALEN, to.sll_addr);
  static_cast<void>(::sendto(socket_.get(), frame.data(), frame.size(), 0,
                             reinterpret_cast<const sockaddr*>(&to), sizeof to));
}

void NeighborFrames::receive(const std::function<void(int, std::uint32_t)>& heard) const {
  std::array<char, 1600> frame{};
  for (;;) {
    sockaddr_ll from{};
    socklen_t size = sizeof from;
    const ssize_t count = ::recvfrom(socket_.get(), frame.data(), frame.size(), 0,
                                     reinterpret_cast<sockaddr*>(&from), &size);
    if (count < 0) return;
    if (from.sll_pkttype == PACKET_OUTGOING) continue;
    const auto port = parse_neighbor_frame({frame.data(), static_cast<std::size_t>(count)});
    if (port) heard(from.sll_ifindex, *port);
  }
}

}  // namespace regatta::lab
