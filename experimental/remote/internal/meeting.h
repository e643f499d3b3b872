// experimental/remote/internal/meeting.h: how a thread's connection begins at both ends, and which
// way it takes. The program offers its queue pair, the host process answers with its own or says
// why not, and packets have to go both ways before anything else does: docs/formats/gpu_remote.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "experimental/remote/internal/channel.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/rdma/wire.h"

namespace regatta::remote {

enum class Transport : std::uint8_t { kAuto, kTcp, kRdma };

// "auto", "tcp" or "rdma"; "" is auto.
Result<Transport> parse_transport(std::string_view word);

// A queue pair as text, in hexadecimal digits.
inline constexpr std::size_t kCardTextMax = 128;
std::string text_of_card(const rdma::QueueCard& card);
Result<rdma::QueueCard> card_of_text(std::string_view text);

// What the host process says to an offer: that this connection stays TCP, and why if RDMA was
// wanted, or its own queue pair.
struct MeetingAnswer {
  std::string card;     // "": TCP
  std::string why_tcp;  // "": nothing else was offered
};
std::string text_of_answer(const MeetingAnswer& answer);
Result<MeetingAnswer> answer_of_text(std::string_view text);

struct JoinOptions {
  std::string server;  // HOST:PORT
  std::string ticket;
  std::string key;
  Transport transport = Transport::kAuto;
  std::string rdma_address;  // of this end; "": that of its TCP connection
};
struct Joined {
  std::uint64_t number = 0;  // of the connection
  std::unique_ptr<Channel> channel;
  bool is_rdma = false;
  std::string how;  // "RDMA by mlx5_0 port 1", "TCP", "TCP: why not RDMA"
};
// A connection of its own for a thread. With kAuto it is a TCP connection where RDMA cannot be had.
Result<Joined> join_host(const JoinOptions& options, std::uint64_t& next_number);

// The host process's side; `offer` is the program's card, "" for TCP. Null: it failed.
std::unique_ptr<Channel> meet_program(os::UniqueFd fd, const std::string& offer,
                                      const std::string& rdma_address);

}  // namespace regatta::remote
