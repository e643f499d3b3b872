// experimental/remote/internal/rendezvous.h: how a thread's connection begins at both ends, and
// which transport it uses. The program offers its queue pair, the host process replies with its own
// or the reason against it, and packets have to go both ways before anything else is sent:
// docs/formats/gpu_remote.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "experimental/remote/internal/channel.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/rdma/wire.h"

namespace regatta::remote {

enum class TransportChoice : std::uint8_t { kAuto, kTcp, kRdma };

// "auto", "tcp" or "rdma"; "" is auto.
Result<TransportChoice> parse_transport(std::string_view word);

// A queue pair as text, in hexadecimal digits.
inline constexpr std::size_t kCardTextMax = 128;
std::string format_queue_card(const rdma::QueueCard& card);
Result<rdma::QueueCard> parse_queue_card(std::string_view text);

// The host process's reply to an offer of RDMA: its own queue pair, or that the connection stays
// TCP, with the reason if RDMA was requested.
struct RendezvousReply {
  std::string card;     // "": TCP
  std::string why_tcp;  // "": the program offered only TCP
};
std::string format_rendezvous_reply(const RendezvousReply& answer);
Result<RendezvousReply> parse_rendezvous_reply(std::string_view text);

struct ConnectOptions {
  std::string server;  // HOST:PORT
  std::string ticket;
  std::string key;
  bool is_plain = false;  // without encryption: neither end checks who the other one is
  TransportChoice transport = TransportChoice::kAuto;
  std::string rdma_address;  // of this end; "": that of its TCP connection
};
struct HostChannel {
  std::uint64_t number = 0;  // of the connection
  std::unique_ptr<ByteChannel> channel;
  bool is_rdma = false;
  std::string how;  // "RDMA by mlx5_0 port 1", "TCP", "TCP: why not RDMA"
};
// A connection to the server, by the ticket.
Result<std::unique_ptr<StreamChannel>> connect_to_server(const ConnectOptions& options);
// A connection for one thread. With kAuto it uses TCP when RDMA is not available.
Result<HostChannel> connect_to_host(const ConnectOptions& options, std::uint64_t& next_number);

// The host process's side; `key` is the program's, "" without encryption; `offer` is the program's
// card, "" for TCP. Null on failure.
std::unique_ptr<ByteChannel> accept_program(os::UniqueFd fd, const std::string& key,
                                            const std::string& offer,
                                            const std::string& rdma_address);

// The server's reply to a program that joins: the host process goes on from here.
inline constexpr std::string_view kPassedOn = "passed on";
// How long the other end of a connection may take to begin it.
inline constexpr Seconds kBeginTimeout{10};

}  // namespace regatta::remote
