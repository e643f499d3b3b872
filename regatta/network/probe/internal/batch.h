// probe/internal/batch.h: many small UDP packets in one system call, with their local and remote
// address and port, and the time at which the kernel received them.
// Source: sendmmsg(2), recvmmsg(2), ip(7) IP_PKTINFO, raw(7) IP_HDRINCL, socket(7) SO_TIMESTAMPNS.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/addresses.h"

namespace regatta::probe {

// Payload of a probe, its answer and a control packet; both ends have the same byte order.
struct Payload {
  std::uint32_t magic = 0;
  std::uint32_t probe = 0;
  std::int64_t round = 0;    // periods since the epoch, when it was due
  std::int64_t sent_ns = 0;  // by the clock of who sent the probe
  std::int64_t held_ns = 0;  // of an answer: from the arrival of the probe on
};

inline constexpr std::uint32_t kProbeMagic = 0x52505231;  // "RPR1"
inline constexpr std::uint32_t kAnswerMagic = 0x52505232;
inline constexpr std::uint32_t kControlMagic = 0x52505233;

inline constexpr int kPayloadBytesMax = 9216 - 28;  // jumbo frames without the headers

struct Packet {
  std::uint32_t local = 0;  // addresses and ports as numbers: 10.0.0.1 is 0x0a000001
  std::uint32_t remote = 0;
  std::uint16_t local_port = 0;  // of packets to send
  std::uint16_t remote_port = 0;
  std::int64_t arrived_ns = 0;  // of received packets
  Payload payload;
  // In bytes, with the zeros behind `payload`; of packets to send at most kPayloadBytesMax.
  std::size_t size = sizeof(Payload);
  std::uint8_t type_of_service = topo::kProbeTos;  // of packets to send
};

// A socket on `port` of all addresses, or of `address`; port 0: any free one. kConflict when it is
// taken.
Result<os::UniqueFd> open_socket(std::uint16_t port, std::uint32_t address = INADDR_ANY);

// Sends from many ports. One raw socket does for all of them, where the process may have one; it
// writes the headers of IP and UDP itself. Else there is a socket for each port.
class Sender {
 public:
  static Result<Sender> open(const std::set<std::uint16_t>& ports, bool may_be_raw = true);

  bool is_raw() const { return static_cast<bool>(raw_); }

  // Sends as many as the kernel accepts at once; returns their number. Never waits. Packets from
  // ports that it was not opened with may be left out. No router divides them (ip(7) "don't
  // fragment").
  std::size_t send(std::span<const Packet> packets);

 private:
  os::UniqueFd raw_;
  std::map<std::uint16_t, os::UniqueFd> sockets_;  // by port
};

// Appends the received packets that are as long as a payload, or longer. Never waits.
void receive_all(int socket, std::vector<Packet>& packets);

// MTU of the interface of this network namespace with this name; none if there is none.
std::optional<int> mtu_of(const std::string& interface);

// Packets dropped at a full receive buffer since the socket was opened.
std::uint32_t dropped(int socket);

}  // namespace regatta::probe
