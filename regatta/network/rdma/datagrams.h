// rdma/datagrams.h: small packets without a connection (unreliable datagrams): each leaves from a
// UDP source port of its own, so that switches send it over a known path; lost packets are not sent
// again. Source: InfiniBand Architecture Specification 1.4, volume 1, chapter 9.8 and annex A17
// (RoCEv2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/rdma/device.h"
#include "regatta/network/rdma/internal/address_handles.h"
#include "regatta/network/rdma/wire.h"

namespace regatta::rdma {

inline constexpr std::size_t kDatagramBytes = 64;  // of a payload at most

struct DatagramShape {
  std::uint32_t sends = 256;      // in flight
  std::uint32_t receives = 1024;  // that wait for receive(); packets beyond are lost
  std::uint8_t traffic_class = 0;
};

// The destination of a datagram.
struct DatagramPeer {
  Gid gid{};
  std::uint32_t queue = 0;  // Datagrams::number() there
  std::uint16_t source_port = 0xC001;

  friend auto operator<=>(const DatagramPeer&, const DatagramPeer&) = default;
};

class Datagrams {
 public:
  // `device` outlives this object.
  static Result<std::unique_ptr<Datagrams>> create(Device& device, const DatagramShape& shape = {});
  Datagrams(const Datagrams&) = delete;
  Datagrams& operator=(const Datagrams&) = delete;
  ~Datagrams();

  // Number of the queue pair that receives.
  std::uint32_t number() const { return pairs_.front().pair->qp_num; }

  // Ensures that packets can leave from these ports. Soft-RoCE has to create queue pairs until each
  // port has one, up to some ten thousand of them; other devices set the port per packet.
  // kExhausted where a port gets none.
  Status allow_ports(const std::set<std::uint16_t>& ports);

  // False when there is no room, no path, the port was not allowed, or the payload is too large.
  // Never waits. Queue pairs that the device put into the error state are restarted first.
  bool send(const DatagramPeer& to, std::span<const std::byte> payload);

  struct Arrived {
    Gid from{};
    std::span<const std::byte> payload;  // until the next call
  };
  // The next datagram that has arrived. Never waits.
  std::optional<Arrived> receive();

 private:
  Datagrams(Device& device, const DatagramShape& shape)
      : device_(device),
        library_(device.library()),
        shape_(shape),
        paths_({.make = [this](const Gid& to, std::uint16_t port) { return make_path(to, port); },
                .free = [this](ibv_ah* path) { library_.queues.destroy_ah(path); }}) {}

  struct Pair {
    ibv_qp* pair = nullptr;
    std::uint16_t port = 0;  // that it sends from; 0: any
  };

  Status make();
  ibv_qp* make_pair(std::uint32_t receives);
  Status start();  // all of them, from any state
  Status start(ibv_qp* pair, bool receives);
  Status change(ibv_qp* pair, ibv_qp_attr attributes, int mask);
  int post_receive(std::uint32_t slot);
  ibv_ah* make_path(const Gid& to, std::uint16_t source_port);
  ibv_qp* pair_for(std::uint16_t port) const;
  void take_sent();
  std::byte* slot(std::uint32_t number) const;
  bool is_v4() const;

  Device& device_;
  const Library& library_;
  const DatagramShape shape_;
  std::vector<std::byte> memory_;
  ibv_mr* region_ = nullptr;
  ibv_cq* sent_ = nullptr;
  ibv_cq* received_ = nullptr;
  std::vector<Pair> pairs_;  // the first receives
  AddressHandles paths_;
  std::vector<std::uint32_t> free_;         // slots to send from
  std::optional<std::uint32_t> looked_at_;  // slot of the last arrival
  std::uint32_t generation_ = 0;            // completions of an earlier one do not count
  bool is_broken_ = false;
};

}  // namespace regatta::rdma
