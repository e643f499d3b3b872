#include "regatta/network/probe/internal/rdma_port.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <sys/socket.h>

#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/probe/matrix.h"
#include "regatta/network/rdma/datagrams.h"
#include "regatta/network/rdma/device.h"

namespace regatta::probe {
namespace {

constexpr std::int64_t kAskAgainNs = 500'000'000;       // who has not answered
constexpr std::int64_t kForgetAfterNs = 1'000'000'000;  // whose probes get lost: it may be another
constexpr std::size_t kPeersMost = 1U << 16U;

// A question for the number of a queue pair, or the answer. Both ends have the same byte order.
struct Card {
  std::uint32_t magic = 0;
  std::uint32_t number = 0;
};
constexpr std::uint32_t kAskMagic = 0x52504331;  // "RPC1"
constexpr std::uint32_t kTellMagic = 0x52504332;

// As it travels.
struct Frame {
  Payload payload;
  std::uint16_t source_port = 0;  // the receiver cannot see it
  std::array<std::uint8_t, 6> unused{};
};
static_assert(sizeof(Frame) == 40);

rdma::Gid gid_of(std::uint32_t address) {
  rdma::Gid gid{};
  gid[10] = gid[11] = 0xff;
  const std::uint32_t bytes = ::htonl(address);
  std::memcpy(gid.data() + 12, &bytes, sizeof bytes);
  return gid;
}

std::uint32_t address_of(const rdma::Gid& gid) {
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, gid.data() + 12, sizeof bytes);
  return ::ntohl(bytes);
}

sockaddr_in place_of(std::uint32_t address) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = ::htons(kCardPort);
  place.sin_addr.s_addr = ::htonl(address);
  return place;
}

struct Peer {
  std::uint32_t number = 0;  // 0: not known
  std::int64_t asked_ns = 0;
  std::int64_t heard_ns = 0;  // by RDMA, or its card
};

struct Nic {
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<rdma::Datagrams> datagrams;
  os::UniqueFd cards;
  std::map<std::uint32_t, Peer> peers;  // by address
};

class VerbsPort final : public RdmaPort {
 public:
  Status add(std::uint32_t address, const std::set<std::uint16_t>& ports) {
    const std::string text = topo::address_text(address);
    Nic nic;
    REGATTA_TRY(device, rdma::Device::open(text));
    REGATTA_TRY(datagrams, rdma::Datagrams::create(*device, {.traffic_class = topo::kProbeTos}));
    REGATTA_TRY_DO(datagrams->allow_ports(ports));
    REGATTA_TRY(cards, open_socket(kCardPort, address));
    nic.device = std::move(device);
    nic.datagrams = std::move(datagrams);
    nic.cards = std::move(cards);
    nics_[address] = std::move(nic);
    return {};
  }

  void send(std::span<const Packet> packets, std::int64_t now_ns) override {
    now_ns_ = now_ns;
    for (const Packet& packet : packets) {
      const auto nic = nics_.find(packet.local);
      if (nic != nics_.end()) send(nic->second, packet);
    }
  }

  void receive(std::vector<Packet>& packets) override {
    for (auto& [address, nic] : nics_) {
      receive_cards(nic);
      while (const auto arrived = nic.datagrams->receive()) {
        Frame frame;
        if (arrived->payload.size() != sizeof frame) continue;
        std::memcpy(&frame, arrived->payload.data(), sizeof frame);
        const std::uint32_t from = address_of(arrived->from);
        if (const auto peer = nic.peers.find(from); peer != nic.peers.end())
          peer->second.heard_ns = now_ns_;
        packets.push_back({.local = address,
                           .remote = from,
                           .remote_port = frame.source_port,
                           .payload = frame.payload});
      }
    }
  }

 private:
  void send(Nic& nic, const Packet& packet) {
    // Senders of probes choose the answered peers: their number is bounded.
    if (nic.peers.size() >= kPeersMost && !nic.peers.contains(packet.remote)) return;
    Peer& peer = nic.peers[packet.remote];
    // A prober that was started again has another queue pair.
    if (peer.number == 0 || now_ns_ - peer.heard_ns > kForgetAfterNs) ask(nic, packet.remote, peer);
    if (peer.number == 0) return;
    const Frame frame{.payload = packet.payload, .source_port = packet.local_port, .unused = {}};
    std::array<std::byte, sizeof frame> bytes{};
    std::memcpy(bytes.data(), &frame, sizeof frame);
    static_cast<void>(nic.datagrams->send(
        {.gid = gid_of(packet.remote), .queue = peer.number, .source_port = packet.local_port},
        bytes));
  }

  void ask(const Nic& nic, std::uint32_t address, Peer& peer) const {
    if (now_ns_ - peer.asked_ns < kAskAgainNs) return;
    peer.asked_ns = now_ns_;
    send_card(nic, place_of(address), {.magic = kAskMagic, .number = nic.datagrams->number()});
  }

  static void send_card(const Nic& nic, const sockaddr_in& to, const Card& card) {
    static_cast<void>(::sendto(nic.cards.get(), &card, sizeof card, MSG_DONTWAIT,
                               reinterpret_cast<const sockaddr*>(&to), sizeof to));
  }

  // A request carries the number of its sender too.
  void receive_cards(Nic& nic) const {
    for (int i = 0; i < 64; ++i) {
      Card card;
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const ssize_t count = ::recvfrom(nic.cards.get(), &card, sizeof card, MSG_DONTWAIT,
                                       reinterpret_cast<sockaddr*>(&from), &size);
      if (count < 0) return;
      if (count != sizeof card || (card.magic != kAskMagic && card.magic != kTellMagic)) continue;
      if (card.magic == kAskMagic)
        send_card(nic, from, {.magic = kTellMagic, .number = nic.datagrams->number()});
      // Only peers of this server count; others cannot fill its memory.
      const auto peer = nic.peers.find(::ntohl(from.sin_addr.s_addr));
      if (peer == nic.peers.end()) continue;
      peer->second.number = card.number;
      peer->second.heard_ns = now_ns_;
    }
  }

  std::map<std::uint32_t, Nic> nics_;  // by address
  std::int64_t now_ns_ = 0;
};

}  // namespace

Result<std::unique_ptr<RdmaPort>> RdmaPort::open(const std::set<std::uint32_t>& addresses,
                                                 const std::set<std::uint16_t>& ports) {
  auto port = std::make_unique<VerbsPort>();
  for (const std::uint32_t address : addresses)
    REGATTA_TRY_DO(port->add(address, ports));
  return std::unique_ptr<RdmaPort>(std::move(port));
}

}  // namespace regatta::probe
